// Elements. Whatever comes from a cluster becomes text: nothing here reads markup.

// An element with properties and children; strings become text, what is null or false is left out.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else if (name in element && !name.startsWith('aria')) element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

// The work, at most once in so many milliseconds, and the last time it is wanted for certain.
export function throttled(work, every) {
  let timer = null;
  let last = -Infinity;
  return () => {
    if (timer !== null) return;
    const wait = Math.max(0, last + every - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, wait);
  };
}

const two = (number) => String(number).padStart(2, '0');

// A time as 12:03:04.567, with the day where `day` says so. In UTC, as objects have it.
export function time(milliseconds, day = false) {
  const at = new Date(milliseconds);
  const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  const part = `.${String(at.getUTCMilliseconds()).padStart(3, '0')}`;
  return day ? `${at.toISOString().slice(0, 10)} ${clock}` : clock + part;
}

// A length of time, in its two largest units.
export function duration(milliseconds) {
  const units = [['d', 86400000], ['h', 3600000], ['m', 60000], ['s', 1000], ['ms', 1]];
  let rest = Math.round(milliseconds);
  const parts = [];
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`);
  }
  return parts.join(' ') || '0ms';
}

// Who has written: the program's short name, or the user.
export function writer(row) {
  const program = (row.program ?? '').split(/[ /]/)[0];
  const user = (row.user ?? '').replace('system:serviceaccount:', '').replace('system:', '');
  return program && !/^(kube-rs|kube|hyper|Mozilla)$/i.test(program) ? program : user || program || 'API server';
}

export const described = (row) => `${row.kind} ${row.key}`;
