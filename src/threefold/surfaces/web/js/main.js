import { render, html } from "./dom.js";
import { Shell } from "./ui/shell.js";

render(html`<${Shell} />`, document.getElementById("app"));
