// The web page of the controller: asks for the state once a second, and shows it. Texts of the network are shown as text alone.
"use strict";

const PERIOD_MS = 1000;
const ROWS_MAX = 500;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

let state = null;
let chosen = null;
let way = null;
let isPaused = false;
let drawn = "";

// ---- elements

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  return filled(made, attributes, children);
}

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  return filled(made, attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function empty(text) {
  return element("p", { class: "empty" }, text);
}

function table(caption, heads, rows) {
  const cell = (name) => (value) => {
    if (value instanceof Node) return element(name, {}, value);
    const isNumber = typeof value === "object" && value !== null;
    return element(name, { class: isNumber ? "number" : null }, isNumber ? value.text : value);
  };
  const head = element("thead", {}, element("tr", {}, ...heads.map(cell("th"))));
  const body = element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td")))));
  return element("table", {}, element("caption", {}, caption), head, body);
}

const number = (text) => ({ text });

// ---- values as text

function span(nanos) {
  if (nanos === null || nanos === undefined) return "–";
  if (nanos < 1e3) return `${nanos} ns`;
  if (nanos < 1e6) return `${(nanos / 1e3).toFixed(1)} us`;
  if (nanos < 1e9) return `${(nanos / 1e6).toFixed(3)} ms`;
  return `${(nanos / 1e9).toFixed(1)} s`;
}

const share = (ppm) => (ppm === null || ppm === undefined ? "–" : `${(ppm / 1e4).toFixed(1)} %`);
const amount = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));

function rate(bps) {
  if (bps === null || bps === undefined) return "–";
  return bps < 1e6 ? `${(bps / 1e3).toFixed(1)} kbit/s` : `${(bps / 1e6).toFixed(1)} Mbit/s`;
}
const portName = (at) => `${at.datapath_id}:${at.port}`;
const hopName = (hop) =>
  `class ${hop.class} of ` + (hop.sender.port ? portName(hop.sender.port) : `host ${hop.sender.host}`);

function remedies(of) {
  const all = [];
  if (of.limit_ns !== null) all.push(`a limit of ${span(of.limit_ns)}`);
  if (of.separation_ns !== null) all.push(`a separation of ${span(of.separation_ns)}`);
  if (of.size !== null) all.push(`samples of ${of.size} octets`);
  return all.length ? `Would fit: ${all.join(", or ")}.` : null;
}

// ---- asking

async function ask(path, options) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) {
    byId("login").hidden = false;
    throw new Error(token ? "The controller refuses this token." : "The controller wants a token.");
  }
  const content = await response.json();
  if (!response.ok) throw new Error(content.error);
  return content;
}

function complain(text) {
  const banner = byId("banner");
  banner.hidden = text === null;
  if (text !== null && banner.textContent !== text) banner.textContent = text;
  byId("content").classList.toggle("stale", text !== null && state !== null);
}

async function refresh() {
  if (!isPaused && !document.hidden) {
    try {
      state = await ask("/v1/state");
      byId("login").hidden = true;
      complain(null);
      show();
    } catch (error) {
      const isGone = error instanceof TypeError;
      complain(isGone ? "The controller does not answer. Switches go on to forward; this page asks again each second." : error.message);
      if (!state) byId("summary").textContent = "No state";
    }
  }
  setTimeout(refresh, PERIOD_MS);
}

// ---- views

function show() {
  const flows = state.pairs.filter((pair) => pair.contract);
  const count = (decision) => flows.filter((pair) => pair.decision === decision).length;
  byId("summary").textContent =
    `up ${span(state.time_ns)} · ${state.switches.length} switches · ${state.links.length} links · ` +
    `${state.hosts.length} hosts · ${count("admitted")} flows admitted, ${count("refused")} refused` +
    (state.is_settled ? "" : " · changing switches");
  showMap();
  showFlows(flows);
  showLog();
  const addresses = state.hosts.flatMap((host) => host.addresses);
  const known = [...byId("addresses").children].map((option) => option.value);
  if (addresses.join() !== known.join()) {
    byId("addresses").replaceChildren(...addresses.map((value) => element("option", { value })));
  }
}

// Hosts whose samples are dropped by their meters.
function breaking() {
  const broken = state.pairs.filter((pair) => pair.traffic?.breaks_contract).map((pair) => pair.from);
  const hosts = state.hosts.filter((host) => host.addresses.some((address) => broken.includes(address)));
  return new Set(hosts.map((host) => host.mac));
}

// Switches stand on an ellipse, hosts outside of their switch.
function places() {
  const [width, height] = [960, 560];
  const found = new Map();
  const count = state.switches.length;
  state.switches.forEach((one, n) => {
    const angle = (2 * Math.PI * n) / count - Math.PI;
    const radius = count > 1 ? 1 : 0;
    const x = width / 2 + radius * 0.27 * width * Math.cos(angle);
    const y = height / 2 + radius * 0.24 * height * Math.sin(angle);
    found.set(one.datapath_id, { x, y, angle });
    const hosts = state.hosts.filter((host) => host.at.datapath_id === one.datapath_id);
    hosts.forEach((host, k) => {
      const fan = count > 1 ? angle + (k - (hosts.length - 1) / 2) * 0.5 : (2 * Math.PI * k) / hosts.length;
      found.set(host.mac, { x: x + 0.17 * width * Math.cos(fan), y: y + 0.22 * height * Math.sin(fan) });
    });
  });
  return found;
}

const portOf = (at) =>
  state.switches.find((one) => one.datapath_id === at.datapath_id)?.ports.find((port) => port.number === at.port);

function onWay(key) {
  return way !== null && way.has(key);
}

function wayOf(pair) {
  const keys = pair.hops.map((hop) => (hop.sender.port ? portName(hop.sender.port) : hop.sender.host));
  const hosts = state.hosts.filter((host) => [pair.from, pair.to].some((address) => host.addresses.includes(address)));
  return new Set([...keys, ...hosts.map((host) => host.mac)]);
}

function node(key, kind, label, content) {
  const choose = () => {
    chosen = key;
    showDetail();
  };
  const press = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose();
    }
  };
  const attributes = { class: `node ${kind}${onWay(key) ? " way" : ""}`, tabindex: 0, role: "button", "data-key": key };
  return shape("g", { ...attributes, "aria-label": label, click: choose, keydown: press }, ...content);
}

function showMap() {
  const broken = breaking();
  const key = JSON.stringify([state.switches, state.links, state.hosts, way && [...way], [...broken]]);
  if (key === drawn) return;
  drawn = key;
  const map = byId("map");
  const focused = document.activeElement?.getAttribute("data-key");
  if (!state.switches.length) {
    map.replaceChildren(shape("text", { x: 480, y: 280 }, "No switch has connected."));
    return showDetail();
  }
  const at = places();
  const line = (a, b, width, kind) =>
    shape("line", { class: kind, x1: a.x, y1: a.y, x2: b.x, y2: b.y, "stroke-width": width });
  const wide = (ppm) => 3 + (9 * Math.min(ppm ?? 0, 1e6)) / 1e6;
  // Both shares side by side: admitted and sent.
  const lanes = (a, b, admitted, sent) => {
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const [x, y] = [(a.y - b.y) / length, (b.x - a.x) / length];
    const beside = (by) => [a, b].map((end) => ({ x: end.x + x * by, y: end.y + y * by }));
    const [first, second] = [beside(-wide(admitted) / 2 - 1), beside(wide(sent) / 2 + 1)];
    return [line(...first, wide(admitted), null), ...(sent === undefined ? [] : [line(...second, wide(sent), "sent")])];
  };
  const links = state.links.map(({ ends: [a, b], is_in_tree }) => {
    const ppm = Math.max(...[a, b].map((end) => portOf(end)?.admitted_ppm ?? 0));
    const all = [a, b].map((end) => portOf(end)?.traffic?.sent_ppm).filter((one) => one !== null && one !== undefined);
    const sent = all.length ? Math.max(...all) : undefined;
    const isWay = onWay(portName(a)) || onWay(portName(b));
    const kind = `link${is_in_tree ? "" : " off-tree"}${isWay ? " way" : ""}`;
    const [from, to] = [at.get(a.datapath_id), at.get(b.datapath_id)];
    const words = `${share(ppm)} admitted` + (sent === undefined ? "" : `, ${share(sent)} sent`);
    const text = shape("text", { class: "minor", x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 14 }, words);
    const label = `link ${portName(a)} to ${portName(b)}, ${words}`;
    return node(`${portName(a)} ${portName(b)}`, kind, label, [...lanes(from, to, ppm, sent), text]);
  });
  const marks = (host) => (onWay(host.mac) ? " way" : "") + (broken.has(host.mac) ? " broken" : "");
  const edges = state.hosts.map((host) => shape("g", { class: `edge${marks(host)}` },
    line(at.get(host.at.datapath_id), at.get(host.mac), 3)));
  const switches = state.switches.map((one) => {
    const { x, y } = at.get(one.datapath_id);
    const name = one.datapath_id.replace(/^0+(?=.)/, "");
    const parts = [
      shape("rect", { x: x - 48, y: y - 22, width: 96, height: 44, rx: 6 }),
      shape("text", { x, y: y - 2 }, `switch ${name}`),
      shape("text", { class: "minor", x, y: y + 14 }, one.state),
    ];
    return node(one.datapath_id, `switch ${one.state}`, `switch ${one.datapath_id}, ${one.state}`, parts);
  });
  const hosts = state.hosts.map((host) => {
    const { x, y } = at.get(host.mac);
    const parts = [
      shape("circle", { cx: x, cy: y, r: 11 }),
      shape("text", { class: "minor", x, y: y + 26 }, host.addresses[0] ?? host.mac),
    ];
    const label = `host ${host.addresses.join(" ")} ${host.mac}${broken.has(host.mac) ? ", breaks its contract" : ""}`;
    return node(host.mac, `host${broken.has(host.mac) ? " broken" : ""}`, label, parts);
  });
  map.replaceChildren(...edges, ...links, ...switches, ...hosts);
  if (focused) map.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  showDetail();
}

function queues(port) {
  const rows = port.queues.map((queue) => {
    const depth = queue.depth_octets !== null ? `${queue.depth_octets} octets` : queue.depth_frames !== null ? `${queue.depth_frames} frames` : "–";
    const counted = queue.traffic ? [number(rate(queue.traffic.rate_bps)), number(amount(queue.traffic.dropped))] : [];
    return [String(queue.class), number(queue.budget_ns ? span(queue.budget_ns) : "unused"), number(depth), ...counted];
  });
  const heads = ["class", number("bound"), number("depth")];
  if (port.queues.some((queue) => queue.traffic)) heads.push(number("sent"), number("dropped"));
  return rows.length ? table(`Queues of port ${port.number}`, heads, rows) : null;
}

function portRow(port) {
  const meter = element("meter", { class: "bar", min: 0, max: 1, value: (port.admitted_ppm ?? 0) / 1e6 });
  const own = port.rate_bps === null ? "–" : `${port.rate_bps / 1e6} Mbit/s`;
  const [sent, received] = [port.traffic?.sent, port.traffic?.received];
  const measured = [rate(sent?.rate_bps), rate(received?.rate_bps), amount(sent?.dropped)].map(number);
  return [String(port.number), port.name, port.role, number(own), number(share(port.admitted_ppm)), meter, ...measured];
}

function ports(title, list) {
  const heads = ["port", "name", "role", number("rate"), number("admitted"), "", ...["sent", "received", "dropped"].map(number)];
  return table(title, heads, list.map(portRow));
}

function showDetail() {
  const detail = byId("detail");
  const one = state.switches.find((other) => other.datapath_id === chosen);
  const host = state.hosts.find((other) => other.mac === chosen);
  const link = state.links.find(({ ends: [a, b] }) => `${portName(a)} ${portName(b)}` === chosen);
  const title = (text) => element("h2", {}, text);
  if (one) {
    const tables = `${one.flow_entries} flow entries, ${one.groups} groups, ${one.meters} meters`;
    detail.replaceChildren(title(`Switch ${one.datapath_id}`),
      element("p", {}, `${one.state}, ${one.model ? `model ${one.model}` : "without a model"}; ${tables}`),
      ports("Ports", one.ports), ...one.ports.map(queues).filter((made) => made !== null));
  } else if (host) {
    const port = portOf(host.at);
    detail.replaceChildren(title(`Host ${host.mac}`),
      element("p", {}, `at ${portName(host.at)}; ${host.addresses.join(", ") || "no address yet"}`),
      ...(port ? [ports("Towards the host", [port]), queues(port)].filter((made) => made !== null) : []));
  } else if (link) {
    const ends = link.ends.map(portOf).filter((port) => port);
    detail.replaceChildren(title(`Link ${chosen.replace(" ", " to ")}`), ports("Both directions", ends),
      ...ends.map(queues).filter((made) => made !== null));
  } else {
    detail.replaceChildren(empty("Choose a switch, a host or a link for its ports and queues."));
  }
}

function showFlows(flows) {
  const wanted = byId("filter").value.toLowerCase();
  const texts = (pair) => [pair.topic, pair.from, pair.to, pair.decision, pair.registration?.state].join(" ").toLowerCase();
  const meant = flows.filter((pair) => texts(pair).includes(wanted));
  const place = byId("flow-table");
  if (place.contains(document.activeElement)) return;
  if (!meant.length) {
    const none = flows.length ? "No flow fits the filter." : "No pair has a contract. Pairs without one match as usual, in the lowest class.";
    return place.replaceChildren(empty(none));
  }
  const rows = meant.slice(0, ROWS_MAX).map((pair) => {
    const decision = element("span", { class: pair.decision }, pair.decision);
    const own = pair.registration;
    const registered = own && `Registration ${own.id} of ${own.owner}, ${own.state}.`;
    const broken = pair.traffic?.breaks_contract ? element("strong", { class: "broken-text" }, "Breaks its contract. ") : null;
    const texts = [registered, pair.reason, remedies(pair.remedies)].filter((text) => text).join(" ");
    const why = element("span", {}, broken, texts);
    const samples = pair.traffic?.samples;
    const press = () => {
      way = wayOf(pair);
      select(byId("tab-topology"));
      showMap();
    };
    const button = pair.hops.length ? element("button", { type: "button", click: press }, "Show way") : "";
    const use = pair.bound_ns === null ? "" : element("meter", { class: "bar", min: 0, max: 1, value: pair.bound_ns / pair.contract.limit_ns });
    return [pair.topic, decision, number(span(pair.measured?.worst_ns)), number(span(pair.bound_ns)), number(span(pair.contract.limit_ns)), use, number(rate(samples?.rate_bps)), number(amount(samples?.dropped)), `${pair.from} to ${pair.to}`, why, button];
  });
  const more = meant.length > ROWS_MAX ? `, the first ${ROWS_MAX} of them` : "";
  const heads = ["topic", "decision", number("measured"), number("bound"), number("limit"), "bound of limit", number("sent"), number("dropped"), "hosts", "reason", ""];
  place.replaceChildren(table(`${meant.length} flows${more}`, heads, rows));
}

function showLog() {
  const place = byId("log-table");
  if (!state.log.length) return place.replaceChildren(empty("Nothing has been decided yet."));
  const rows = [...state.log].reverse().map((entry) => {
    const decision = element("span", { class: entry.decision }, entry.decision);
    const outcome = entry.bound_ns !== null ? `${span(entry.bound_ns)} at most` : entry.reason;
    return [number(String(entry.number)), number(span(entry.at_ns)), entry.topic ?? entry.writer, decision, outcome ?? ""];
  });
  const heads = [number("no"), number("after"), "topic", "decision", "bound or reason"];
  place.replaceChildren(table("The last decisions, the newest first", heads, rows));
}

async function decide(event) {
  event.preventDefault();
  const place = byId("verdict");
  const nanos = (id) => Math.round(Number(byId(id).value) * 1e3);
  const asked = {
    from: byId("from").value.trim(), to: byId("to").value.trim(),
    separation_ns: nanos("separation"), size: Number(byId("size").value), limit_ns: nanos("limit"),
    is_reliable: byId("reliable").checked, importance: Number(byId("importance").value),
  };
  try {
    const verdict = await ask("/v1/what-if", { method: "POST", body: JSON.stringify(asked) });
    const lines = verdict.is_admitted
      ? [`${span(verdict.bound_ns)} at most.`, verdict.moved ? `${verdict.moved} admitted flows would move to other classes.` : null]
      : [verdict.reason, verdict.binding_hop && `Binding: ${hopName(verdict.binding_hop)}.`, remedies(verdict.remedies)];
    const word = verdict.is_admitted ? "admitted" : "refused";
    const hops = verdict.hops.map((hop) => element("li", {}, hopName(hop)));
    place.replaceChildren(element("h2", { class: word }, `Would be ${word}`),
      ...lines.filter((line) => line).map((line) => element("p", {}, line)),
      ...(hops.length ? [element("ol", {}, ...hops)] : []));
  } catch (error) {
    const text = error instanceof TypeError ? "The controller does not answer." : error.message;
    place.replaceChildren(element("p", { class: "refused" }, text));
  }
}

// ---- tabs: arrow keys move, as WAI-ARIA has it

function select(tab) {
  for (const other of byId("tabs").children) {
    const isChosen = other === tab;
    other.setAttribute("aria-selected", isChosen);
    other.tabIndex = isChosen ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !isChosen;
  }
}

function start() {
  const tabs = [...byId("tabs").children];
  tabs.forEach((tab, n) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = tabs[(step + tabs.length) % tabs.length];
      select(next);
      next.focus();
    });
  });
  byId("pause").addEventListener("click", (event) => {
    isPaused = !isPaused;
    event.target.setAttribute("aria-pressed", isPaused);
    event.target.textContent = isPaused ? "Resume" : "Pause";
  });
  byId("login").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("token", byId("token").value);
    byId("token").value = "";
    byId("banner").textContent = "Trying the token.";
  });
  byId("filter").addEventListener("input", () => state && showFlows(state.pairs.filter((pair) => pair.contract)));
  byId("ask").addEventListener("submit", decide);
  const wanted = location.hash && byId(`tab-${location.hash.slice(1)}`);
  if (wanted) select(wanted);
  document.body.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && way) {
      way = null;
      if (state) showMap();
    }
  });
  refresh();
}

start();
