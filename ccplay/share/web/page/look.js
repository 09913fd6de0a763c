// Themes of ccplay: by the system's preference, or chosen by a key.

const OFFERED = ["auto", "dark", "light", "projector", "colourblind", "amber", "print"];
let looks = {}, chosen = "auto", look = null;
const prefersLight = matchMedia("(prefers-color-scheme: light)");

export async function loadLooks(changed) {
  looks = await (await fetch("looks")).json();
  chosen = localStorage.getItem("look") ?? "auto";
  prefersLight.addEventListener("change", () => { apply(); changed(); });
  apply();
}

/** Change to the next theme; return its title. */
export function nextLook() {
  const there = OFFERED.filter((each) => each === "auto" || each in looks);
  chosen = there[(there.indexOf(chosen) + 1) % there.length];
  localStorage.setItem("look", chosen);
  apply();
  return chosen === "auto" ? `as the system: ${look.title}` : look.title;
}

function apply() {
  look = looks[chosen] ?? looks[prefersLight.matches ? "light" : "dark"];
  const root = document.documentElement;
  for (const [name, colour] of Object.entries(look.inks))
    root.style.setProperty(`--${name.replace("_", "-")}`, colour);
  root.style.colorScheme = look.dark ? "dark" : "light";
}

export const ink = (name) => look?.inks[name] ?? "#888888";
export const flowInk = (number) => look?.flows[number % look.flows.length] ?? "#888888";
