// Where one is: `#/boards/lisbon?list=1`. Every place can be reloaded and shared.
import { signal } from "./dom.js";

function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(plain);
  return { page: parts[0] || "chat", parts: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)) };
}

function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The place that is shown. */
export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});

/**
 * The address of a place.
 * @param {string[]} parts
 * @param {Record<string, string | number | undefined>} query what is empty is left out
 */
export function href(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export function go(parts, query) {
  location.hash = href(parts, query);
}

/** Another address for the same place, which "back" does not stop at. */
export function settle(parts, query) {
  history.replaceState(null, "", href(parts, query));
  route.value = read();
}
