'use strict';
// This script adds zooming, hovering, a filter and the table of all RPCs. The page is complete without it.
(() => {
  const $ = (selector, root) => (root || document).querySelector(selector);
  const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
  const make = (name, props, ...children) => {
    const e = Object.assign(document.createElement(name), props);
    e.append(...children);
    return e;
  };
  const svg = (name, attrs) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const key in attrs) e.setAttribute(key, attrs[key]);
    return e;
  };
  const say = text => { $('#live').textContent = text; };

  // duration and size return the same text as the tables.
  const duration = ns => ns < 1e3 ? ns + 'ns' : ns < 1e6 ? (ns / 1e3).toFixed(1) + 'us' : ns < 1e9 ? (ns / 1e6).toFixed(2) + 'ms' : ns < 1e13 ? (ns / 1e9).toFixed(3) + 's' : `${Math.trunc(ns / 36e11)}h${Math.trunc(ns / 6e10) % 60}m${Math.trunc(ns / 1e9) % 60}s`;
  const size = n => n < 10000 ? String(n) : n < 2 ** 20 ? (n / 2 ** 10).toFixed(1) + 'K' : n < 10 * 2 ** 30 ? (n / 2 ** 20).toFixed(n < 10 * 2 ** 20 ? 2 : 1) + 'M' : (n / 2 ** 30).toFixed(1) + 'G';
  const hex = n => '0x' + n.toString(16).padStart(8, '0');

  // The theme follows the system until a button changes it.
  const themes = ['auto', 'light', 'dark'];
  const theme = make('button', { type: 'button', textContent: 'Colors: auto' });
  theme.onclick = () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || 'auto') + 1) % themes.length];
    if (next === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    theme.textContent = 'Colors: ' + next;
  };
  $('header').append(make('div', { className: 'tools' }, theme));
  addEventListener('beforeprint', () => all('details').forEach(d => { d.open = true; }));

  // Tables are sorted by the button in a heading.
  const sortable = (table, sort) => all('thead th', table).forEach((th, at) => {
    const button = make('button', { type: 'button', textContent: th.textContent });
    button.onclick = () => {
      const down = th.getAttribute('aria-sort') !== 'descending';
      all('thead th', table).forEach(x => x.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      sort(at, down);
    };
    th.replaceChildren(button);
  });
  const compare = (a, b) => a === b ? 0 : a < b ? -1 : 1;
  for (const table of all('main table[id]:not(#rpc-table)')) {
    sortable(table, (at, down) => {
      const key = row => {
        const c = row.cells[at];
        return c.dataset.v === undefined ? c.textContent : Number(c.dataset.v);
      };
      const rows = [...table.tBodies[0].rows].map(row => [key(row), row]);
      rows.sort((a, b) => (typeof a[0] === typeof b[0] ? compare(a[0], b[0]) : typeof a[0] === 'number' ? 1 : -1) * (down ? -1 : 1));
      table.tBodies[0].append(...rows.map(r => r[1]));
    });
  }

  // decode returns the columns of all RPCs.
  const decode = async text => {
    const bytes = atob(text), packed = new Uint8Array(bytes.length);
    for (let i = 0; i < packed.length; i++) packed[i] = bytes.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const b = new Uint8Array(await new Response(stream).arrayBuffer());
    let at = 0;
    const unsigned = () => {
      let c = b[at++];
      if (c < 128) return c;
      let v = c & 127, scale = 128;
      do {
        c = b[at++];
        v += (c & 127) * scale;
        scale *= 128;
      } while (c & 128);
      return v;
    };
    const signed = () => {
      const v = unsigned();
      return v % 2 ? -(v + 1) / 2 : v / 2;
    };
    const n = unsigned(), utf8 = new TextDecoder();
    const words = () => Array.from({ length: unsigned() }, () => {
      const length = unsigned();
      at += length;
      return utf8.decode(b.subarray(at - length, at));
    });
    const d = { n, names: words(), statuses: words(), rules: words() };
    for (const [name, delta] of [['id', 1], ['start', 1], ['conn', 0], ['xid', 1], ['name', 0], ['status', 0], ['rule', 0], ['latency', 0], ['call', 0], ['reply', 0], ['packet', 1], ['back', 0], ['bound', 0]]) {
      const column = d[name] = new Float64Array(n);
      if (delta) for (let i = 0, before = 0; i < n; i++) column[i] = before += signed();
      else for (let i = 0; i < n; i++) column[i] = signed();
    }
    return d;
  };

  // The table of RPCs, with a filter. A filter is a list of words that all must occur; conn:2, >5ms and <100us are possible, too.
  const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
  const filterOf = (d, text) => {
    const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map(word => {
      let m = /^([<>])([\d.]+)(ns|us|ms|s)$/.exec(word);
      if (m) {
        const ns = m[2] * units[m[3]];
        return m[1] === '>' ? i => d.latency[i] > ns : i => d.latency[i] >= 0 && d.latency[i] < ns;
      }
      if ((m = /^conn:(\d+)$/.exec(word))) return i => d.conn[i] === Number(m[1]);
      if (/^0x[0-9a-f]+$/.test(word)) return i => hex(d.xid[i]).includes(word);
      const has = list => list.map(w => w.toLowerCase().includes(word));
      const names = has(d.names), statuses = has(d.statuses), rules = has(d.rules);
      return i => names[d.name[i]] || statuses[d.status[i]] || rules[d.rule[i]];
    });
    return i => tests.every(t => t(i));
  };
  const step = 200;
  const table = d => {
    const section = $('#rpcs'), body = $('#rpc-table tbody'), caption = $('#rpc-table caption');
    const total = Number(section.dataset.total);
    const drawn = new Set(all('.ladder').map(e => e.id));
    let order = Array.from({ length: d.n }, (_, i) => i), shown = [], count = 0;
    const columns = [d.id, d.start, d.conn, d.xid, d.back, d.name, d.call, d.reply, d.latency, d.status, d.rule];
    const words = { 5: d.names, 9: d.statuses, 10: d.rules };
    const cell = (text, number) => make('td', { textContent: text, className: number ? 'n' : '' });
    const latency = i => d.latency[i] < 0 ? '-' : (d.bound[i] ? '<=' : '') + duration(d.latency[i]);
    const row = i => {
      const id = 'rpc-' + d.id[i], xid = make('th', { scope: 'row' }), status = cell(d.statuses[d.status[i]]);
      xid.append(drawn.has(id) ? make('a', { href: '#' + id, textContent: hex(d.xid[i]) }) : hex(d.xid[i]));
      if (d.statuses[d.status[i]] !== 'ok') status.className = 'bad';
      const bytes = n => cell(n < 0 ? '-' : size(n), 1);
      return make('tr', {}, cell(d.id[i], 1), cell((d.start[i] / 1e9).toFixed(6), 1), cell(d.conn[i], 1), xid, cell(d.back[i] ? 'back' : 'fwd'), cell(d.names[d.name[i]]),
        bytes(d.call[i]), bytes(d.reply[i]), cell(latency(i), 1), status, cell(d.rules[d.rule[i]]));
    };
    const more = make('button', { type: 'button', textContent: 'Show more' });
    const extend = () => {
      body.append(...shown.slice(count, count + step).map(row));
      count = Math.min(count + step, shown.length);
      more.hidden = count >= shown.length;
      const some = count < shown.length ? `the first ${count} of ${shown.length}` : shown.length;
      caption.textContent = `RPCs: ${some}` + (shown.length < d.n ? ` that match, of ${d.n}` : '') + (total > d.n ? ` on this page; the capture has ${total}` : '');
    };
    const refresh = () => {
      const wanted = filterOf(d, input.value);
      shown = order.filter(wanted);
      count = 0;
      body.replaceChildren();
      extend();
      say(`${shown.length} of ${d.n} RPCs`);
    };
    more.onclick = extend;
    const input = make('input', { type: 'search', placeholder: 'filter: write >5ms conn:0 0x4cc9dbf7 no_reply' });
    input.setAttribute('aria-label', 'Filter the RPCs: words, XIDs, conn:N, >5ms, <100us');
    let timer;
    input.oninput = () => {
      clearTimeout(timer);
      timer = setTimeout(refresh, 120);
    };
    $('#rpc-table').parentNode.before(make('div', { className: 'tools' }, input));
    $('#rpc-table').parentNode.after(make('div', { className: 'tools' }, more));
    sortable($('#rpc-table'), (at, down) => {
      const c = columns[at], w = words[at], sign = down ? -1 : 1;
      order = Array.from({ length: d.n }, (_, i) => i).sort((a, b) => sign * (w ? compare(w[c[a]], w[c[b]]) : c[a] - c[b]) || a - b);
      refresh();
    });
    refresh();
  };

  // chart adds zooming, and the names of RPCs in the row with the RPCs in flight.
  const chart = (box, d) => {
    const plots = all('.plot', box), axis = $('.axis', box);
    const from = Number(box.dataset.from), to = Number(box.dataset.to);
    const wide = 1000;
    let left = 0, right = wide;
    const tip = make('div', { className: 'tip', hidden: true });
    box.append(tip);
    const ticks = axis.innerHTML;
    const timeOf = x => from + (left + x * (right - left)) / wide * (to - from);
    const draw = () => {
      for (const p of plots) p.setAttribute('viewBox', `${left} 0 ${right - left} ${p.viewBox.baseVal.height}`);
      back.hidden = left === 0 && right === wide;
      if (back.hidden) {
        axis.innerHTML = ticks;
        return;
      }
      axis.replaceChildren();
      const span = timeOf(1) - timeOf(0), decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(span / 1e9)) + 1));
      for (let i = 0; i <= 5; i++) {
        const at = (i / 5 * 90 + 5) + '%';
        axis.append(svg('line', { x1: at, x2: at, y2: 5 }));
        const text = svg('text', { x: at, y: 17 });
        text.textContent = (timeOf(i / 5 * .9 + .05) / 1e9).toFixed(decimals) + 's';
        axis.append(text);
      }
    };
    const zoom = (a, b) => {
      if (b - a < 2) {
        const middle = (a + b) / 2;
        [a, b] = [middle - 1, middle + 1];
      }
      left = Math.max(0, a);
      right = Math.min(wide, b);
      draw();
    };
    const button = (text, label, action) => {
      const e = make('button', { type: 'button', textContent: text, title: label });
      e.setAttribute('aria-label', label);
      e.onclick = action;
      return e;
    };
    const scale = (factor, at) => {
      const middle = left + (at === undefined ? .5 : at) * (right - left), half = (right - left) * factor;
      zoom(middle - half * (at === undefined ? .5 : at), middle + half * (1 - (at === undefined ? .5 : at)));
    };
    const move = part => {
      const by = Math.max(-left, Math.min(wide - right, (right - left) * part));
      zoom(left + by, right + by);
    };
    const back = button('Whole time', 'Show the whole time', () => zoom(0, wide));
    box.prepend(make('div', { className: 'tools' }, button('+', 'Enlarge', () => scale(.5)), button('-', 'Reduce', () => scale(2)), button('<', 'Earlier', () => move(-.25)), button('>', 'Later', () => move(.25)), back));
    back.hidden = true;
    for (const p of plots) {
      let begun = null, mark = null;
      const place = e => {
        const r = p.getBoundingClientRect();
        return Math.max(0, Math.min(1, (e.clientX - r.left) / r.width));
      };
      p.addEventListener('pointerdown', e => {
        if (e.button === 0 && e.pointerType === 'mouse') {
          begun = place(e);
          mark = svg('rect', { class: 'select', y: 0, height: p.viewBox.baseVal.height });
          p.append(mark);
          p.setPointerCapture(e.pointerId);
        }
      });
      p.addEventListener('pointermove', e => {
        if (begun === null) return;
        const now = place(e), w = right - left;
        mark.setAttribute('x', left + Math.min(begun, now) * w);
        mark.setAttribute('width', Math.abs(now - begun) * w);
      });
      const end = e => {
        if (begun === null) return;
        const a = begun, b = place(e), w = right - left;
        mark.remove();
        begun = null;
        if (e.type === 'pointerup' && Math.abs(a - b) > .01) zoom(left + Math.min(a, b) * w, left + Math.max(a, b) * w);
      };
      p.addEventListener('pointerup', end);
      p.addEventListener('pointercancel', end);
    }
    const spans = plots.find(p => p.dataset.strip === 'spans');
    if (!spans || !d) return;
    const conn = Number(box.dataset.chart.slice('conn-'.length));
    const mine = [];
    for (let i = 0; i < d.n; i++) if (d.conn[i] === conn) mine.push(i);
    if (mine.length === 0) return;
    mine.sort((a, b) => d.start[a] - d.start[b] || a - b);
    const describe = i => `${hex(d.xid[i])} ${d.names[d.name[i]]}, ${(d.start[i] / 1e9).toFixed(6)}s, ${d.latency[i] < 0 ? 'no latency' : (d.bound[i] ? '<=' : '') + duration(d.latency[i])}, ${d.statuses[d.status[i]]}${d.rules[d.rule[i]] ? ', ' + d.rules[d.rule[i]] : ''}`;
    const show = (i, x, y) => {
      tip.textContent = describe(i);
      tip.hidden = false;
      tip.style.left = Math.max(0, Math.min(x, box.clientWidth - 260)) + 'px';
      tip.style.top = y + 'px';
    };
    spans.addEventListener('pointermove', e => {
      const r = spans.getBoundingClientRect(), outer = box.getBoundingClientRect();
      const at = timeOf((e.clientX - r.left) / r.width), near = (timeOf(1) - timeOf(0)) / r.width * 3;
      let best = -1, distance = near;
      for (const i of mine) {
        if (d.start[i] > at + near) break;
        const end = d.start[i] + Math.max(d.latency[i], 0), off = at < d.start[i] ? d.start[i] - at : at > end ? at - end : 0;
        if (off < distance || off === distance && best < 0) [best, distance] = [i, off];
      }
      if (best < 0) tip.hidden = true;
      else show(best, e.clientX - outer.left + 12, r.bottom - outer.top + 4);
    });
    spans.addEventListener('pointerleave', () => { tip.hidden = true; });
    let current = -1;
    spans.tabIndex = 0;
    spans.addEventListener('keydown', e => {
      const by = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[e.key];
      if (e.key === '+' || e.key === '-') scale(e.key === '+' ? .5 : 2);
      else if (e.key === 'Escape') tip.hidden = true;
      else if (e.key === 'Enter' && current >= 0) {
        const target = document.getElementById('rpc-' + d.id[mine[current]]);
        if (target) target.scrollIntoView();
        else {
          const input = $('#rpcs input');
          input.value = hex(d.xid[mine[current]]) + ' conn:' + conn;
          input.oninput();
          input.focus();
        }
      } else if (by) {
        current = Math.max(0, Math.min(mine.length - 1, current + by));
        const i = mine[current], x = (d.start[i] - from) / (to - from) * wide;
        if (x < left || x > right) zoom(x - (right - left) / 2, x + (right - left) / 2);
        const r = spans.getBoundingClientRect(), outer = box.getBoundingClientRect();
        show(i, (x - left) / (right - left) * r.width, r.bottom - outer.top + 4);
        say(describe(i));
      } else return;
      e.preventDefault();
    });
  };

  const data = $('#rows');
  const ready = d => {
    if (d) table(d);
    all('.chart').forEach(box => chart(box, d));
    document.documentElement.dataset.ready = d ? d.n : 0;
  };
  if (data && 'DecompressionStream' in self) decode(data.textContent.trim()).then(ready, () => ready(null));
  else ready(null);
})();
