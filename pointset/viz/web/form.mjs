/* The form of `pointset serve`: it sends a file to the server, and shows the answer. */
import { showAnswer } from "./answers.mjs";
import { element, say } from "./elements.mjs";

const MOST_SHOWN = 5;

element("form").onsubmit = async (event) => {
  event.preventDefault();
  say(element("state"), "Classifying …");
  element("send").disabled = true;
  const answered = fetch("classify", { method: "POST", body: new FormData(event.target) });
  // The server's refusals have a detail, too, but for what is too large.
  const said = await answered.then((response) => response.json().catch(() => ({ detail: response.statusText }))).catch((error) => ({ detail: `no answer: ${error.message}` }));
  element("send").disabled = false;
  say(element("fault"), said.detail ?? "");
  say(element("state"), said.name ? [`${said.name}: ${said.points.toLocaleString("en")} points`, ...said.warnings].join("; ") : "");
  say(element("doubt"), said.do_not_trust ? "Do not trust this class." : "");
  showAnswer((said.classes ?? []).slice(0, MOST_SHOWN).map((own) => [own.class, own.probability]));
  element("page").hidden = !said.page;
  if (said.page) element("page").href = said.page;
};
