/* A canvas of clouds that turn together: it is drawn when something has changed, while it can be seen. */
import { Renderer } from "./drawing.mjs";
import { listenToHand, turnByKey } from "./gestures.mjs";
import { onPaper } from "./paper.mjs";
import { onScheme, scheme } from "./scheme.mjs";

const MOST_PIXELS = 12e6, LONGEST = 8192, SLOW = 60;

/**
 * Its subclasses have `panels`, where clouds are drawn; `look`, {scale, reach, selected}, or null while there is nothing
 * to draw; and `place()`, which lays the panels out. What the hand does beyond turning is theirs too.
 */
export class CloudCanvas {
  /** `turned()` is called when the hand has turned the camera: other canvases may share it. */
  constructor(canvas, camera, palettes, turned) {
    Object.assign(this, { canvas, camera, palettes, turned, waiting: false, slow: false, printing: false, unseen: false });
    this.renderer = new Renderer(canvas, () => this.redraw());
    this.hand = listenToHand(canvas, {
      turn: (right, down) => this.drag(right, down),
      magnify: (factor) => { camera.magnify(factor); this.moved(); },
      hover: (event) => this.hover(event), press: (event) => this.press(event), leave: () => this.leave(),
      rest: () => this.rest(),
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new IntersectionObserver((entries) => {
      this.unseen = !entries.at(-1).isIntersecting;
      this.redraw();
    }, { rootMargin: "100px" }).observe(canvas);
    onScheme(() => this.paint());
    for (const [name, printing] of [["beforeprint", true], ["afterprint", false]])
      window.addEventListener(name, () => this.print(printing));
    this.paint();
  }

  key(event) { if (turnByKey(event, this.camera)) this.moved(); }

  hover() {}

  press() {}

  leave() {}

  rest() { this.redraw(); }

  drag(right, down) {
    this.camera.turn(right, down);
    this.moved();
  }

  /** Whether the hand is turning the clouds. */
  get held() { return this.hand.held(); }

  /** The view is another. */
  moved() {
    this.redraw();
    this.turned();
  }

  paint() {
    this.renderer.palette = this.palettes[scheme(this.printing).name];
    this.redraw();
  }

  /** What stands over the canvas and goes with it, elements that have a place. */
  get over() { return []; }

  print(printing) {
    this.printing = printing;
    this.paper?.remove();
    this.canvas.hidden = false;
    this.paint();
    this.draw();
    if (printing) this.canvas.before(this.paper = onPaper(this.canvas, this.over, this.panels));
    this.canvas.hidden = printing;
  }

  /** As many pixels as the screen has for so large a canvas, within what it can have. */
  size(width, height) {
    const fine = Math.max(window.devicePixelRatio || 1, this.printing ? 2 : 1);
    const ratio = Math.min(fine, LONGEST / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)));
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== pixels[0]) this.canvas.width = pixels[0];
    if (this.canvas.height !== pixels[1]) this.canvas.height = pixels[1];
  }

  redraw() {
    if (this.waiting || this.unseen) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    const { look } = this;
    if (!look || !this.canvas.clientWidth) return;
    const begun = performance.now(), { held } = this, { paper, empty } = scheme(this.printing);
    // A machine without a graphics processor shows every fourth point while the hand turns.
    this.renderer.draw(this.panels, this.camera, { ...look, paper, empty, every: this.slow && held ? 4 : 1 });
    if (held && !this.slow) {
      this.renderer.finish();
      this.slow = performance.now() - begun > SLOW;
    }
  }
}
