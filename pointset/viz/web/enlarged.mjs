/* Shows one map over the whole window. Meanwhile, the page behind it keeps its scroll position and is inert. */
import { element } from "./elements.mjs";

/** Calls `changed(index)` when a map is enlarged, and `changed(null)` when it is closed. */
export class Enlarged {
  constructor(changed) {
    Object.assign(this, { changed, index: null, among: [] });
    element("close").onclick = () => this.close();
    element("previous").onclick = () => this.step(-1);
    element("next").onclick = () => this.step(1);
  }

  get open() { return this.index !== null; }

  /** `among`: the indices of the shown maps, in order; `describe(index)` returns [name, note]. */
  show(index, among, describe) {
    Object.assign(this, { index, among, describe });
    element("stage").style.minHeight = `${element("stage").offsetHeight}px`;
    this.#set(true);
    this.#write();
    element("canvas").focus({ preventScroll: true });
  }

  step(by) {
    const at = this.among.indexOf(this.index);
    this.index = this.among[(at + by + this.among.length) % this.among.length];
    this.#write();
  }

  close() {
    if (!this.open) return;
    this.index = null;
    this.#set(false);
    element("stage").style.minHeight = "";
    this.changed(null);
  }

  #write() {
    const [name, note] = this.describe(this.index);
    element("enlarged-name").textContent = name;
    element("enlarged-note").textContent = note;
    this.changed(this.index);
  }

  #set(open) {
    document.documentElement.classList.toggle("enlarged", open);
    const view = element("view");
    for (const [name, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", "enlarged-name"]])
      if (open) view.setAttribute(name, value); else view.removeAttribute(name);
    for (const one of document.querySelectorAll("body > :not(#stage, #tip, #help, script)")) one.inert = open;
    for (const name of ["previous", "next"]) element(name).hidden = this.among.length < 2;
    (open ? element("enlarged-foot") : element("legend")).append(element("bar"));
  }
}
