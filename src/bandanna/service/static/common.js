// What the parts of the page share: the service, with the reader's key, and how text is put into the page.
export const $ = (id) => document.getElementById(id);
export const number = (value) => Number(value).toLocaleString("en", { maximumSignificantDigits: 6 });
export function isolated(text) {
  const made = document.createElement("bdi");
  made.textContent = text;
  return made;
}

export function say(text) { $("message").textContent = text; }

export async function ask(path, body, { signal, method = "POST" } = {}) {
  const key = sessionStorage.getItem("key");
  const headers = key ? { Authorization: `Bearer ${key}` } : {}; // without one, a proxy may say who it is
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = method;
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  let detail = `The service answered ${answer.status}.`;
  try { detail = (await answer.json()).detail ?? detail; } catch { /* not a document */ }
  const error = new Error(detail);
  error.status = answer.status;
  throw error;
}

export async function json(path, body, method) {
  const answer = await ask(path, body, { method });
  return answer.status === 204 ? null : answer.json();
}

export function guarded(work) {
  return async (event) => {
    event?.preventDefault?.();
    try {
      say("");
      await work(event);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) {
        sessionStorage.removeItem("key");
        dispatchEvent(new Event("locked"));
      }
      say(error.message);
    }
  };
}

export function element(name, text, ...inside) {
  const made = document.createElement(name);
  made.append(...(text ? [text] : []), ...inside);
  return made;
}

