// A page that shows one of three buttons and asks about it. What leaves it is one random bit.
const $ = (id) => document.getElementById(id);
const { url, ...options } = await (await fetch("config.json", { cache: "no-store" })).json();
const { Device } = await import(`${url}/device/bandanna-device.js`);

const device = new Device({ url, ...options });
let event_id;

function say(text) { $("message").textContent = text; }

async function spent() {
  const { spent, events } = await device.resume();
  const waiting = Object.values(events).filter(({ done }) => !done).length;
  const { epsilon, days } = options.budget;
  $("privacy").textContent = `What you answer stays here. One random bit leaves for each button, ${options.delay} s after you
    saw it, whether or not you answered. Spent: epsilon ${spent / 1e9} of ${epsilon} in ${days} days. Bits still to send: ${waiting}.`;
  document.body.dataset.waiting = waiting;
}

async function show() {
  try {
    const decision = await device.decide();
    event_id = decision.event_id;
    $("offer").className = decision.arm;
    document.body.dataset.shown = event_id;
    say("");
  } catch (error) {
    $("offer").className = "plain"; // what the page would show without the service
    document.body.dataset.refused = error.code ?? String(error);
    say("");
  }
  $("offer").hidden = false;
  $("question").hidden = event_id === undefined;
  await spent();
}

async function answer(loss) {
  await device.feedback(event_id, loss);
  $("question").hidden = true;
  document.body.dataset.answered = event_id;
  say("Thank you. Nothing has been sent yet.");
}

$("like").addEventListener("click", () => answer(0));
$("dislike").addEventListener("click", () => answer(1));
setInterval(spent, 100);
await show();
