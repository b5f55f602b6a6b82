/* Translates pointer, wheel and key events on a canvas into turns, zooms and presses. The plain wheel scrolls. */
const PER_PIXEL = 0.6;
const STILL = 5;
const TURNS = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] };

/** `on`: {turn(right, down), magnify(factor), hover(event), press(event), leave(), rest()}. */
export function listenToHand(canvas, on) {
  const held = new Map();
  let travelled = 0;
  const apart = () => { const [a, b] = [...held.values()]; return Math.hypot(a.x - b.x, a.y - b.y) || 1; };
  // If one finger scrolls the page, it turns the cloud only sideways: the first pixels of a scroll also arrive here.
  const scrolls = () => getComputedStyle(canvas).touchAction !== "none";
  const place = (event) => ({ x: event.clientX, y: event.clientY });

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, place(event));
    travelled = held.size === 1 ? 0 : Infinity;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = held.get(event.pointerId);
    if (!last) { if (event.pointerType !== "touch") on.hover(event); return; }
    const before = held.size === 2 ? apart() : 0, now = place(event);
    travelled += Math.hypot(now.x - last.x, now.y - last.y);
    held.set(event.pointerId, now);
    const [right, down] = [(now.x - last.x) * PER_PIXEL, (now.y - last.y) * PER_PIXEL];
    if (held.size === 2) {
      on.magnify(apart() / before);
      on.turn(right / 2, down / 2);
    } else if (travelled > STILL) on.turn(right, event.pointerType === "touch" && scrolls() ? 0 : down);
  });
  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    if (event.type === "pointerup" && travelled <= STILL) on.press(event);
    on.rest();
  };
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, release);
  canvas.addEventListener("pointerleave", on.leave);
  // Browsers report a pinch on a trackpad as a wheel event with the Ctrl key.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) { on.leave(); return; }
    event.preventDefault();
    const step = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 * event.deltaY : event.deltaY;
    on.magnify(2 ** (-step / 500));
  }, { passive: false });
  // One finger scrolls the page (touch-action: pan-y), two fingers zoom the maps.
  canvas.addEventListener("touchmove", (event) => {
    if (event.touches.length > 1 && event.cancelable) event.preventDefault();
  }, { passive: false });
  return { held: () => held.size > 0 };
}

/** Apply a key to the camera; return true if the key has a meaning for it. */
export function turnByKey(event, camera) {
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  if (event.key in TURNS) camera.turn(...TURNS[event.key]);
  else if (event.key === "+" || event.key === "=") camera.magnify(1.15);
  else if (event.key === "-") camera.magnify(1 / 1.15);
  else if (event.key === "0") camera.reset();
  else return false;
  event.preventDefault();
  return true;
}
