/* The user's preferences: light or dark colours, and reduced motion. */
const COLORS = {
  light: { paper: [1, 1, 1], empty: [0.72, 0.72, 0.72] },
  dark: { paper: [0.078, 0.075, 0.094], empty: [0.42, 0.42, 0.44] },
};
const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** The name of the colour scheme, and its colours of background and hollow dots; prints are always light. */
export function scheme(printing = false) {
  const name = dark.matches && !printing ? "dark" : "light";
  return { name, ...COLORS[name] };
}

export function onScheme(changed) { dark.addEventListener("change", changed); }

export function mayMove() { return !still.matches; }
