// The way to the program that serves this page. The token came behind the # of the link, which no server sees.

const KEPT = 'kubewright-token';

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Takes the token out of the address, so that it does not stay in it.
export function takeToken() {
  const state = new URLSearchParams(location.hash.slice(1));
  const token = state.get('token');
  if (token) {
    sessionStorage.setItem(KEPT, token);
    state.delete('token');
    history.replaceState(null, '', `#${state}`);
  }
  return sessionStorage.getItem(KEPT);
}

export const token = () => sessionStorage.getItem(KEPT) ?? '';

async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${token()}` };
  let response;
  try {
    response = await fetch(`/api/${path}`, { ...options, headers, cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'kubewright does not answer: it may have ended');
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Refused(response.status, told.error ?? `HTTP ${response.status}`);
  }
  return response;
}

const query = (fields) => {
  const kept = Object.entries(fields).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return new URLSearchParams(kept).toString();
};

export async function get(path, fields = {}, signal) {
  const response = await ask(`${path}?${query(fields)}`, { signal });
  return response.json();
}

export async function send(method, path, body) {
  const response = await ask(path, { method, body: body === undefined ? undefined : JSON.stringify(body) });
  return response.json();
}

// Calls `changed` whenever there are writes, until the stream ends.
export async function follow(changed) {
  const response = await ask('events');
  const reader = response.body.getReader();
  for (;;) {
    const { done } = await reader.read();
    if (done) return;
    changed();
  }
}
