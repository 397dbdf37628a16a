"""JavaScript with which a page of any site tries to reach a server."""

from wakeful.http.auth import PAGE_HEADER
from wakeful.people.login import STORAGE_KEY

# Each takes its arguments as one object and returns the result. `base` is the server's address as the page sees it.

# The page secret is in the storage of its own origin; other origins cannot read it.
_SECRET = f"""
  let secret = null;
  try {{ secret = localStorage.getItem('{STORAGE_KEY}'); }} catch {{ /* a sandboxed frame has no storage */ }}
  const own = secret ? {{'{PAGE_HEADER}': secret}} : {{}};
"""

FETCH = (
    """async ({base, method, path, body, mode}) => {"""
    + _SECRET
    + """
  const init = {method, mode: mode ?? 'cors', credentials: 'include', headers: own};
  if (body) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = mode === 'no-cors' ? 'text/plain' : 'application/json';
  }
  try {
    const answer = await fetch(base + path, init);
    return answer.type === 'opaque' ? {opaque: true} : {status: answer.status, body: await answer.json()};
  } catch (error) {
    return {failed: error.name};
  }
}"""
)

SOCKET = (
    """async ({base, path, message}) => {"""
    + _SECRET
    + """
  if (secret) {
    const asked = await fetch(base + '/ws-ticket', {method: 'POST', headers: own});
    if (asked.ok) path += (path.includes('?') ? '&' : '?') + 'ticket=' + (await asked.json()).ticket;
  }
  return new Promise(resolve => {
  const frames = [];
  const socket = new WebSocket(base.replace('http', 'ws') + path);
  let opened = false;
  socket.onopen = () => { opened = true; if (message) socket.send(JSON.stringify(message)); };
  socket.onmessage = event => {
    frames.push(JSON.parse(event.data));
    const last = frames.at(-1).type;
    if (last === 'stream_end' || last === 'error' || !message) socket.close();
  };
  socket.onclose = event => resolve({opened, frames, code: event.code});
  });
}"""
)

# Resolves with the outcome of loading a subresource: a script, an image.
LOAD = """({base, path, tag}) => new Promise(resolve => {
  const element = document.createElement(tag);
  element.onload = () => resolve('loaded');
  element.onerror = () => resolve('failed');
  element.src = base + path;
  document.documentElement.append(element);
})"""

# Submits a form, which leaves the page, so the test looks at the result from outside.
SUBMIT = """({base, path, fields, encoding}) => {
  const form = document.createElement('form');
  form.method = 'post';
  form.action = base + path;
  form.enctype = encoding ?? 'application/x-www-form-urlencoded';
  for (const [name, value] of Object.entries(fields ?? {})) {
    const input = document.createElement('input');
    input.type = 'hidden';
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.documentElement.append(form);
  form.submit();
}"""
