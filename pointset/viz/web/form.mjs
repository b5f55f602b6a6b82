/* The form of `pointset serve`: it sends a file to the server, and shows the answer. */
import { showAnswer } from "./answers.mjs";
import { element, say } from "./elements.mjs";

const MOST_SHOWN = 5;

element("form").onsubmit = async (event) => {
  event.preventDefault();
  const said = await answerTo(event.target);
  say(element("fault"), said.detail ?? "");
  say(element("state"), said.name ? [`${said.name}: ${said.points.toLocaleString("en")} points`, ...said.warnings].join("; ") : "");
  say(element("doubt"), said.do_not_trust ? "Do not trust this class." : "");
  showAnswer((said.classes ?? []).slice(0, MOST_SHOWN).map((own) => [own.class, own.probability]));
  element("page").hidden = !said.page;
  if (said.page) element("page").href = said.page;
};

/** What the server says of the chosen file, or {detail} if it does not. */
async function answerTo(form) {
  const body = new FormData(form);
  say(element("state"), "Classifying …");
  element("send").disabled = true;
  try {
    return await (await fetch("classify", { method: "POST", body })).json();
  } catch (error) {
    return { detail: `no answer from the server: ${error.message}` };
  } finally {
    element("send").disabled = false;
  }
}
