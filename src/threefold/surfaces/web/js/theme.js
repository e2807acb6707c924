// Before anything is painted: which theme it is, so that the page does not flash in the other one.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    let chosen = "auto";
    try {
      chosen = localStorage.getItem("threefold.theme") || "auto";
    } catch {
      // storage is off: the system's theme
    }
    const light = chosen === "light" || (chosen === "auto" && !dark.matches);
    document.documentElement.dataset.theme = light ? "light" : "dark";
  };
  show();
  dark.addEventListener("change", show);
  addEventListener("theme", show);
})();
