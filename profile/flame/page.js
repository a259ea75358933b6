// page.js - draws a flame graph of the tables in #data: docs/flame.md.  All names are text, never HTML.
"use strict";

const ROW = 18; // px
const FRAMES_MAX = 20000; // elements; above it the narrowest frames are not drawn
const LIST_MAX = 20, THREADS_MAX = 200, LABEL_MAX = 400, STATUS_MAX = 150;
const KINDS = ["unknown", "user", "inlined", "jit", "kernel", "guest", "command", "lost"];
const COMMAND = 6, LOST = 7;
const KIND_HUES = [[0, 0, 0], [12, 36, 82], [12, 36, 82], [285, 30, 60], [204, 26, 72], [160, 20, 60], [0, 0, 0], [0, 0, 0]]; // from, range, saturation
const KIND_TEXTS = ["unknown", "user space", "inlined", "made while it ran (JIT)", "kernel", "guest", "command", "lost, estimated"];

const get = (id) => document.getElementById(id);
const data = JSON.parse(get("data").textContent);
const sides = data.old ? [data.profile, data.old] : [data.profile];
const isDiff = sides.length > 1;

// ---- functions of both sides, each once ----

const functions = [];
const functionIds = new Map();

function addFunction(label, object, file, kind) {
	const short = object && object[0] !== "[" ? object.slice(object.lastIndexOf("/") + 1) || object : object;
	const key = kind + "\0" + label + "\0" + (short || "");
	let id = functionIds.get(key);
	if (id === undefined) {
		id = functions.length;
		functionIds.set(key, id);
		functions.push({label, object, file, kind, short});
	}
	return id;
}

function readFunctions(side) {
	const text = (id) => (id < 0 ? null : side.texts[id]);
	side.ids = [];
	for (let i = 0; i < side.functions.length; i += 4) {
		const object = text(side.functions[i + 1]);
		const short = object && (object[0] === "[" ? object : "[" + (object.slice(object.lastIndexOf("/") + 1) || object) + "]");
		const name = text(side.functions[i]);
		side.ids.push(addFunction(name === null ? short || "[unknown]" : name, object, text(side.functions[i + 2]), side.functions[i + 3]));
	}
	side.comms = side.threads.map((thread) => addFunction(thread[2], null, null, COMMAND));
}
sides.forEach(readFunctions);
const ALL = addFunction("all", null, null, COMMAND);

// ---- what is shown: also the URL's fragment ----

const settings = data.settings;
const state = {};

function readState() {
	const given = new URLSearchParams(location.hash.slice(1));
	const eventOf = (name) => sides[0].events.findIndex((event) => event.name === name);
	state.event = given.get("event") === "wall" && hasWall() ? "wall" : String(Math.max(eventOf(given.get("event")), -1));
	if (state.event === "-1")
		state.event = String(settings.event);
	state.thread = Number.parseInt(given.get("thread") ?? "-1", 10);
	if (!(state.thread >= 0 && state.thread < sides[0].threads.length))
		state.thread = -1;
	state.weigh = given.get("weigh") === "samples" || (!given.has("weigh") && settings.weigh === "samples") ? "samples" : "period";
	state.colours = ["function", "object", "kind"].find((by) => by === given.get("colours")) || settings.colours;
	state.inverted = given.get("inverted") === "1";
	state.reversed = given.get("reversed") === "1";
	state.old = isDiff && given.get("old") === "1";
	state.search = given.get("search") || "";
	state.zoom = (given.get("zoom") || "").split(".").filter(Boolean).map((id) => Number.parseInt(id, 36));
}

let addState = () => {}; // of time.js

function writeState(isNew) {
	const to = new URLSearchParams();
	if (state.event !== String(settings.event))
		to.set("event", state.event === "wall" ? "wall" : sides[0].events[Number(state.event)].name);
	if (state.thread >= 0)
		to.set("thread", state.thread);
	if (state.weigh !== settings.weigh)
		to.set("weigh", state.weigh);
	if (state.colours !== settings.colours)
		to.set("colours", state.colours);
	for (const name of ["inverted", "reversed", "old"])
		if (state[name])
			to.set(name, "1");
	if (state.search)
		to.set("search", state.search);
	if (state.zoom.length)
		to.set("zoom", state.zoom.map((id) => id.toString(36)).join("."));
	addState(to);
	try {
		history[isNew ? "pushState" : "replaceState"](null, "", "#" + to);
	} catch {
		// a page without an address of its own
	}
}

// ---- the tree: nodes of one function below one path ----

let nodes = [], root = null, unit = null;

const WAITS = ["offcpu-time", "runqueue-time"]; // time off the CPU; other intervals are spans, which run and wait

// Whether each event of a side is part of its wall time: time on the CPU by one clock, and off it.
function wallEvents(side) {
	const clock = side.events.findIndex((event) => event.unit === "ns" && !event.lasts);
	return side.events.map((event, i) => i === clock || WAITS.includes(event.name));
}

function hasWall() {
	return sides[0].events.some((event) => event.name === "offcpu-time");
}

// Whether each event of a side is shown.
function chosenEvents(side) {
	if (state.event === "wall")
		return wallEvents(side);
	const name = sides[0].events[Number(state.event)]?.name;
	const chosen = side.events.map((event) => event.name === name);
	return chosen.includes(true) || side.events.length !== 1 ? chosen : [true];
}

function addNode(up, id) {
	const node = {up, id, index: nodes.length, depth: up ? up.depth + 1 : 0, kids: null, list: null, low: 0, high: 0,
		w: [0, 0], n: [0, 0], own: [0, 0], count: [0, 0]};
	nodes.push(node);
	return node;
}

function childOf(node, id) {
	node.kids ??= new Map();
	let child = node.kids.get(id);
	if (!child) {
		child = addNode(node, id);
		node.kids.set(id, child);
	}
	return child;
}

function note(node, line) {
	if (!line)
		return;
	node.low = node.low ? Math.min(node.low, line) : line;
	node.high = Math.max(node.high, line);
}

// The node of a command's stack, the outermost function first.  known: those that were made.
function outermostFirst(side, known, thread, stack) {
	const comm = side.comms[thread], base = comm * (side.stacks.length / 3 + 1);
	const pending = [];
	let node;
	for (; stack >= 0; stack = side.callers[stack]) {
		node = known.get(base + stack);
		if (node)
			break;
		pending.push(stack);
	}
	node ??= childOf(root, comm);
	while (pending.length) {
		const at = pending.pop();
		node = childOf(node, side.ids[side.stacks[3 * at]]);
		note(node, side.stacks[3 * at + 1]);
		known.set(base + at, node);
	}
	return node;
}

function innermostFirst(side, thread, stack) {
	let node = root;
	for (; stack >= 0; stack = side.callers[stack]) {
		node = childOf(node, side.ids[side.stacks[3 * stack]]);
		note(node, side.stacks[3 * stack + 1]);
	}
	return childOf(node, side.comms[thread]);
}

function addSide(side, s) {
	const chosen = chosenEvents(side), known = new Map();
	const wanted = state.thread < 0 ? null : sides[0].threads[state.thread];
	if (!side.callers) {
		side.callers = [];
		for (let i = 0; i < side.stacks.length / 3; i++)
			side.callers.push(side.stacks[3 * i + 2] ? i - side.stacks[3 * i + 2] : -1);
	}
	for (let i = 0; i < side.weights.length; i += 5) {
		const [stack, thread, event, samples, weight] = side.weights.slice(i, i + 5);
		// Another recording's threads have other numbers: there it is the name that is the same.
		if (!chosen[event] || (wanted && (s ? side.threads[thread][2] !== wanted[2] : thread !== state.thread)))
			continue;
		const node = state.reversed ? innermostFirst(side, thread, stack) : outermostFirst(side, known, thread, stack);
		node.own[s] += state.weigh === "samples" ? samples : weight;
		node.n[s] += samples;
	}
	if (!wanted)
		addLoss(side, s, chosen);
}

// As many samples as were lost, of the mean weight of those that are there; records of no known event go to events by their samples.
function lossOf(side, chosen) {
	let all = 0, here = 0, weight = 0, samples = 0;
	side.events.forEach((event, i) => {
		all += event.samples;
		if (chosen[i]) {
			here += event.samples;
			weight += event.weight;
			samples += event.lost;
		}
	});
	const named = side.events.reduce((sum, event) => sum + event.lost, 0);
	const share = all ? here / all : 1;
	const mean = state.weigh === "samples" || !here ? 1 : weight / here;
	samples += Math.max(side.lost[1] - named, 0) * share;
	return {mean, samples, records: side.lost[0] * share};
}

function addLoss(side, s, chosen) {
	const loss = lossOf(side, chosen);
	for (const what of ["records", "samples"])
		if (loss[what] > 0) {
			const count = Math.max(Math.round(loss[what]), 1);
			const node = childOf(root, addFunction(isDiff ? "[lost " + what + "]" : "[lost " + count + " " + what + "]", null, null, LOST));
			node.own[s] += Math.max(Math.floor(loss[what] * loss.mean), 1);
		}
}

function compare(a, b) {
	const one = functions[a.id], other = functions[b.id];
	return (one.kind === LOST) - (other.kind === LOST) || (one.label < other.label ? -1 : one.label > other.label ? 1 : a.id - b.id);
}

function build() {
	const chosen = chosenEvents(sides[0]);
	nodes = [];
	root = addNode(null, ALL);
	sides.forEach(addSide);
	for (let i = nodes.length - 1; i >= 0; i--) {
		const node = nodes[i];
		for (let s = 0; s < sides.length; s++) {
			node.w[s] += node.own[s];
			node.count[s] += node.w[s] > 0;
			if (node.up) {
				node.up.w[s] += node.w[s];
				node.up.n[s] += node.n[s];
				node.up.count[s] += node.count[s];
			}
		}
		node.list = node.kids ? [...node.kids.values()].sort(compare) : [];
	}
	unit = state.weigh === "samples" ? "samples" : sides[0].events.find((event, i) => chosen[i])?.unit || null;
	if (isDiff)
		listChanges();
}

// ---- words ----

const percent = (part, whole) => (whole > 0 ? (100 * part / whole).toFixed(part && part / whole < 0.0995 ? 2 : 1) : "0") + " %";
const number = (value) => Math.round(value).toLocaleString("en-US");
const plural = (count, one, many) => number(count) + " " + (Math.round(count) === 1 ? one : many || one + "s");

function quantity(value) {
	if (unit === "ns")
		return (value / 1e6).toLocaleString("en-US", {maximumFractionDigits: value < 1e8 ? 3 : 1}) + " ms";
	return unit === "samples" ? plural(value, "sample") : plural(value, unit || "occurrence", unit || "occurrences");
}

function linesOf(node) {
	const file = functions[node.id].file;
	return file ? file + (node.low ? ":" + node.low + (node.high > node.low ? "-" + node.high : "") : "") : "";
}

// Lines of words about a node, its name first.
function describe(node) {
	const s = state.old ? 1 : 0, f = functions[node.id];
	const words = [f.label];
	let amount = quantity(node.w[s]);
	if (unit !== "samples" && f.kind !== LOST)
		amount += ", " + plural(node.n[s], "sample");
	words.push(amount);
	let shares = percent(node.w[s], root.w[s]) + " of all";
	if (node.up)
		shares += ", " + percent(node.w[s], node.up.w[s]) + (state.reversed ? " of what it called" : " of its caller");
	if (!state.reversed && f.kind !== LOST)
		shares += ", " + percent(node.own[s], root.w[s]) + " its own";
	words.push(shares);
	if (isDiff) {
		const change = shareOf(node, 0) - shareOf(node, 1);
		words.push(!node.w[1] ? "new: not in the old recording" : !node.w[0] ? "vanished: " + percent(node.w[1], root.w[1]) + " of the old recording" :
			percent(node.w[1], root.w[1]) + " before, " + percent(node.w[0], root.w[0]) + " now: " + (change < 0 ? "\u2212" : "+") +
			(100 * Math.abs(change)).toFixed(2) + " points, \u00d7" + (shareOf(node, 0) / shareOf(node, 1)).toFixed(2));
	}
	if (f.kind < COMMAND)
		words.push(KIND_TEXTS[f.kind] + (f.object ? ": " + f.object : ""));
	const lines = linesOf(node);
	if (lines)
		words.push(lines);
	return words;
}

function showFacts() {
	const side = sides[0], chosen = chosenEvents(side), facts = [];
	const names = side.events.filter((event, i) => chosen[i]).map((event) => event.name);
	const samples = side.events.reduce((sum, event) => sum + event.samples, 0), loss = lossOf(side, chosen);
	const estimate = Math.floor(loss.records * loss.mean) + Math.floor(loss.samples * loss.mean);
	const kept = root.w[0] - (state.thread < 0 ? estimate : 0), lost = [];
	const withSamples = unit === "samples" ? "" : " in " + plural(root.n[0], "sample");
	facts.push((names.join(" + ") || "no event") + ": " + quantity(Math.max(kept, 0)) + withSamples);
	if (side.lost[0])
		lost.push(plural(side.lost[0], "record"));
	if (side.lost[1])
		lost.push(plural(side.lost[1], "sample"));
	facts.push(lost.length ? "lost: " + lost.join(" and ") + (estimate && state.thread < 0 ? ", about " + percent(estimate, root.w[0]) : "") : "nothing lost");
	if (side.lost[2])
		facts.push("throttled: " + plural(side.lost[2], "time"));
	if (side.lost[3])
		facts.push("unread: " + plural(side.lost[3], "record"));
	facts.push("innermost function unknown: " + percent(side.nameless, samples));
	facts.push("stacks truncated: " + percent(side.truncated, samples));
	if (side.crowded)
		facts.push("too many stacks: " + percent(side.crowded, samples));
	if (side.command)
		facts.push("command: " + side.command);
	if (side.host)
		facts.push("host: " + side.host);
	if (isDiff)
		facts.push("compared with " + (data.old.title || "the old recording") + ", " + quantity(root.w[1]) +
			(data.old.lost[0] + data.old.lost[1] ? " (lost: " + number(data.old.lost[0] + data.old.lost[1]) + ")" : ""));
	get("facts").textContent = facts.join("  \u00b7  ");
	document.title = data.title;
	get("title").textContent = data.title;
}

// ---- colours: of a name, the same in each graph ----

function hash(text) { // FNV-1a
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
	h ^= h >>> 15;
	h = Math.imul(h, 0x2c1b3c6d);
	return (h ^ h >>> 13) >>> 0;
}

function paint(element, f) {
	if (f.colour === undefined || f.by !== state.colours) {
		const by = state.colours === "kind" ? "" : state.colours === "object" ? f.short || "" : f.label;
		const h = hash(by), [from, range, saturation] = KIND_HUES[f.kind];
		f.by = state.colours;
		f.colour = [(from + range * (h & 1023) / 1023).toFixed(1), saturation + "%", ((h >>> 10 & 1023) / 1023 * 9).toFixed(1) + "%"];
	}
	element.style.setProperty("--h", f.colour[0]);
	element.style.setProperty("--s", f.colour[1]);
	element.style.setProperty("--l", f.colour[2]);
	element.classList.add(KINDS[f.kind]);
}

const shareOf = (node, s) => (root.w[s] ? node.w[s] / root.w[s] : 0);

function paintChange(element, node) {
	const change = shareOf(node, 0) - shareOf(node, 1);
	element.classList.add("diff", change > 0 ? "more" : "less");
	// A change of 10 points, or more, is the full colour.
	element.style.setProperty("--a", Math.abs(change) < 0.0005 ? 0 : (0.12 + 0.66 * Math.min(1, Math.sqrt(10 * Math.abs(change)))).toFixed(2));
	if (!node.w[1])
		element.classList.add("new");
	else if (!node.w[0])
		element.classList.add("vanished");
}

function showLegend() {
	const legend = get("legend"), rows = [];
	const add = (text, classes, style) => rows.push([text, classes, style]);
	if (isDiff) {
		add("larger share than before", "diff more", {"--a": 0.7});
		add("smaller share", "diff less", {"--a": 0.7});
		add("new (+)", "diff new more", {"--a": 0.4});
		add("vanished (\u2212), in the widths of the old", "diff vanished less", {"--a": 0.4});
	}
	const seen = new Set(nodes.map((node) => functions[node.id].kind));
	for (let kind = 0; kind < KINDS.length; kind++)
		if (seen.has(kind) && (!isDiff || kind >= COMMAND)) {
			const [from, range, saturation] = KIND_HUES[kind];
			add(KIND_TEXTS[kind], KINDS[kind], {"--h": from + range / 2, "--s": saturation + "%", "--l": "4%"});
		}
	legend.replaceChildren(...rows.map(([text, classes, style]) => {
		const row = document.createElement("span"), swatch = document.createElement("i");
		swatch.className = classes;
		Object.entries(style).forEach(([name, value]) => swatch.style.setProperty(name, value));
		row.append(swatch, text);
		return row;
	}));
}

// ---- what is new and what vanished, by function ----

function listChanges() {
	const totals = functions.map(() => [0, 0]), on = functions.map(() => 0);
	const path = [[root, 0]];
	const enter = (node) => {
		if (on[node.id]++ === 0)
			for (let s = 0; s < 2; s++)
				totals[node.id][s] += node.w[s];
	};
	enter(root);
	while (path.length) {
		const top = path[path.length - 1];
		if (top[1] === top[0].list.length) {
			on[top[0].id]--;
			path.pop();
		} else {
			const child = top[0].list[top[1]++];
			enter(child);
			path.push([child, 0]);
		}
	}
	const list = get("changes").querySelector("div");
	const found = [0, 1].map((s) => functions.map((f, id) => ({f, share: root.w[s] ? totals[id][s] / root.w[s] : 0, id}))
		.filter((row) => row.f.kind < LOST && totals[row.id][s] > 0 && !totals[row.id][1 - s]).sort((a, b) => b.share - a.share));
	get("changes").querySelector("summary").textContent = found[0].length + " new, " + found[1].length + " vanished functions";
	list.replaceChildren(...found.map((rows, s) => {
		const part = document.createElement("section"), ul = document.createElement("ul");
		part.append(s ? "Vanished, with their shares of the old" : "New, with their shares");
		for (const row of rows.slice(0, LIST_MAX)) {
			const li = document.createElement("li");
			li.textContent = percent(row.share, 1) + "  " + row.f.label.slice(0, LABEL_MAX) + (row.f.short ? "  (" + row.f.short + ")" : "");
			ul.append(li);
		}
		if (rows.length > LIST_MAX) {
			const li = document.createElement("li");
			li.textContent = "and " + (rows.length - LIST_MAX) + " more";
			ul.append(li);
		}
		part.append(ul);
		return part;
	}));
}

// ---- drawing ----

const KEYS = "Click or Enter: zoom.  Arrows: move.  Escape: zoom out, 0: to all.  /: search, n N: next and previous match.  i: inverted.  r: reversed." +
	(isDiff ? "  o: old widths." : "");
let drawn = []; // {node, x, width, element}, the outermost rows first
let focus = null, selected = null, pattern = null;

function findFocus() {
	focus = root;
	for (const id of state.zoom) {
		const child = focus.kids?.get(id);
		if (!child || !child.w[state.old ? 1 : 0])
			break;
		focus = child;
	}
	state.zoom = pathOf(focus);
}

function pathOf(node) {
	const path = [];
	for (; node.up; node = node.up)
		path.push(node.id);
	return path.reverse();
}

// Frames of the focus and those below it, in `width` px; each at least `least` px.
function layOut(width, least) {
	const s = state.old ? 1 : 0, placed = [], above = [];
	let hidden = 0;
	for (let node = focus.up; node; node = node.up)
		above.push({node, x: 0, width, isAbove: true});
	placed.push(...above.reverse());
	const pending = focus.w[s] ? [{node: focus, x: 0, width}] : [];
	while (pending.length) {
		const frame = pending.pop(), value = frame.node.w[s];
		let x = frame.x;
		placed.push(frame);
		if (placed.length > FRAMES_MAX)
			return null;
		for (const child of frame.node.list) {
			const wide = child.w[s] / value * frame.width;
			if (wide >= least)
				pending.push({node: child, x, width: wide});
			else
				hidden += child.count[s];
			x += wide;
		}
	}
	return {placed, hidden};
}

function draw() {
	const frames = get("frames"), view = get("view"), s = state.old ? 1 : 0;
	const width = settings.width || Math.max(view.clientWidth, 100);
	let least = Math.max(1, settings.share * width), result;
	while (!(result = layOut(width, least)))
		least *= 2;
	drawn = result.placed;
	const depth = drawn.reduce((most, frame) => Math.max(most, frame.node.depth), 0);
	const height = Math.max((depth + 1) * ROW + 4, view.clientHeight);
	frames.style.width = width + "px";
	frames.style.height = height + "px";
	const parts = document.createDocumentFragment();
	drawn.forEach((frame, i) => {
		const element = document.createElement("i"), f = functions[frame.node.id], node = frame.node;
		const mark = isDiff && f.kind < LOST && node.up ? (!node.w[1] ? "+ " : !node.w[0] ? "\u2212 " : "") : "";
		element.dataset.i = i;
		element.style.left = frame.x + "px";
		element.style.width = frame.width + "px";
		element.style.top = (state.inverted ? node.depth * ROW : height - (node.depth + 1) * ROW) + "px";
		if (frame.width < 4)
			element.classList.add("thin");
		if (frame.width > 20)
			element.textContent = mark + f.label.slice(0, LABEL_MAX);
		paint(element, f);
		if (isDiff && f.kind < COMMAND)
			paintChange(element, node);
		if (frame.isAbove)
			element.classList.add("above");
		frame.element = element;
		parts.append(element);
	});
	frames.replaceChildren(parts);
	const words = [plural(drawn.length, "frame") + " drawn"];
	words.push(result.hidden ? plural(result.hidden, "frame") + " narrower than " + (least > 1 ? percent(least, width) : "a pixel") + " not drawn" : "no frame too narrow");
	get("drawn").textContent = words.join(", ");
	if (!root.w[s])
		get("status").textContent = "no samples";
	markMatches();
	select(selected && drawn.some((frame) => frame.node === selected) ? selected : null);
}

let isAtRoot = true; // the outermost row is in sight; it stays so when the view's size changes

function scrollToRoot() {
	const view = get("view");
	view.scrollTop = state.inverted ? 0 : view.scrollHeight;
	isAtRoot = true;
}

// ---- searching ----

function markMatches() {
	const input = get("search"), s = state.old ? 1 : 0, matched = get("matched");
	pattern = null;
	input.setCustomValidity("");
	try {
		pattern = state.search ? new RegExp(state.search) : null;
	} catch (error) {
		input.setCustomValidity(error.message);
		matched.textContent = "no regular expression";
	}
	get("frames").classList.toggle("searching", !!pattern);
	if (!pattern) {
		if (input.validity.valid)
			matched.textContent = "";
		drawn.forEach((frame) => frame.element.classList.remove("match"));
		return;
	}
	const is = functions.map((f) => pattern.test(f.label));
	drawn.forEach((frame) => frame.element.classList.toggle("match", is[frame.node.id]));
	// A column counts once: nothing below a match is looked at.
	const sum = (top) => {
		const pending = [top];
		let total = 0;
		while (pending.length) {
			const node = pending.pop();
			if (is[node.id] && node !== root)
				total += node.w[s];
			else
				for (const child of node.list)
					pending.push(child);
		}
		return total;
	};
	const within = sum(focus), names = new Set(nodes.filter((node) => is[node.id] && node.w[s]).map((node) => node.id));
	matched.textContent = "matched " + percent(sum(root), root.w[s]) + " of all" + (focus.up ? ", " + percent(within, focus.w[s]) + " of the zoomed" : "") +
		", in " + plural(names.size, "function");
}

function nextMatch(step) {
	const matches = drawn.filter((frame) => frame.element.classList.contains("match"));
	if (!matches.length)
		return;
	const at = matches.findIndex((frame) => frame.node === selected);
	select(matches[at < 0 ? (step > 0 ? 0 : matches.length - 1) : (at + step + matches.length) % matches.length].node, true);
}

// ---- choosing ----

function zoom(node) {
	state.zoom = pathOf(node);
	writeState(true);
	findFocus();
	draw();
	select(focus, true);
}

function select(node, isMoved) {
	drawn.forEach((frame) => frame.element.classList.toggle("selected", frame.node === node));
	selected = node;
	if (!node) {
		get("status").textContent = root.w[state.old ? 1 : 0] ? KEYS : "no samples";
		return;
	}
	get("status").textContent = describe(node).map((word) => word.slice(0, STATUS_MAX)).join("  \u00b7  ");
	if (isMoved)
		drawn.find((frame) => frame.node === node).element.scrollIntoView({block: "nearest", inline: "nearest"});
}

// The drawn frame to which an arrow leads.
function neighbour(key) {
	if (!selected)
		return focus;
	const outwards = (key === "ArrowUp") === state.inverted;
	if (key === "ArrowUp" || key === "ArrowDown") {
		if (outwards)
			return selected.up || selected;
		const below = drawn.filter((frame) => frame.node.up === selected);
		return below.length ? below.reduce((a, b) => (b.width > a.width ? b : a)).node : selected;
	}
	const row = drawn.filter((frame) => frame.node.depth === selected.depth).sort((a, b) => a.x - b.x);
	const at = row.findIndex((frame) => frame.node === selected) + (key === "ArrowLeft" ? -1 : 1);
	return (row[at] || {node: selected}).node;
}

function showTip(frame, x, y) {
	const tip = get("tip"), [name, ...words] = describe(frame.node), title = document.createElement("b");
	title.textContent = name.slice(0, 2000);
	tip.replaceChildren(title, words.map((word) => word.slice(0, LABEL_MAX)).join("\n"));
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	tip.style.left = Math.max(2, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
	tip.style.top = (y + 18 + box.height < innerHeight ? y + 18 : Math.max(2, y - box.height - 10)) + "px";
}

function fillChoices() {
	const option = (value, text, isOff) => {
		const element = new Option(text.slice(0, 120), value);
		element.disabled = !!isOff;
		return element;
	};
	const side = sides[0];
	get("event").replaceChildren(...side.events.map((event, i) => option(String(i), event.name)));
	if (hasWall())
		get("event").append(option("wall", "wall time"));
	get("event-label").hidden = get("event").options.length < 2;
	const sums = side.threads.map((thread, i) => ({i, samples: 0}));
	let total = 0;
	for (let i = 0; i < side.weights.length; i += 5) {
		sums[side.weights[i + 1]].samples += side.weights[i + 3];
		total += side.weights[i + 3];
	}
	sums.sort((a, b) => b.samples - a.samples);
	get("thread").replaceChildren(option("-1", "all of " + number(side.threads.length)), ...sums.slice(0, THREADS_MAX).map(({i, samples}) => {
		const [pid, tid, comm] = side.threads[i];
		return option(String(i), comm.slice(0, 60) + (tid < 0 ? "" : " " + pid + "/" + tid) + ", " + percent(samples, total) + " of samples");
	}));
	if (sums.length > THREADS_MAX)
		get("thread").append(option("", "and " + (sums.length - THREADS_MAX) + " of fewer samples", true));
	get("thread-label").hidden = side.threads.length < 2;
	get("colours-label").hidden = isDiff;
	get("old").hidden = !isDiff;
	get("changes").hidden = !isDiff;
}

function showChoices() {
	for (const name of ["event", "thread", "weigh", "colours"])
		get(name).value = String(state[name]);
	for (const name of ["inverted", "reversed", "old"])
		get(name).setAttribute("aria-pressed", String(state[name]));
	if (get("search").value !== state.search)
		get("search").value = state.search;
}

function renew(isBuilt) {
	if (!isBuilt) {
		selected = null;
		build();
	}
	findFocus();
	showChoices();
	showFacts();
	showLegend();
	draw();
	scrollToRoot();
}

function toggle(name) {
	state[name] = !state[name];
	if (name === "reversed")
		state.zoom = [];
	renew(name !== "reversed");
	writeState();
}

for (const name of ["event", "thread", "weigh", "colours"])
	get(name).addEventListener("change", (event) => {
		state[name] = name === "thread" ? Number(event.target.value) : event.target.value;
		renew(name === "colours");
		writeState();
	});
for (const name of ["inverted", "reversed", "old"])
	get(name).addEventListener("click", () => (name !== "old" || isDiff) && toggle(name));
get("out").addEventListener("click", () => zoom(root));
get("controls").addEventListener("submit", (event) => event.preventDefault());
get("search").addEventListener("input", (event) => {
	state.search = event.target.value;
	markMatches();
	writeState();
});

get("view").addEventListener("scroll", () => {
	const view = get("view");
	isAtRoot = state.inverted ? view.scrollTop < ROW : view.scrollTop + view.clientHeight > view.scrollHeight - ROW;
});
const frameAt = (event) => (event.target.dataset?.i ? drawn[Number(event.target.dataset.i)] : null);
get("frames").addEventListener("click", (event) => frameAt(event) && zoom(frameAt(event).node));
get("frames").addEventListener("mousemove", (event) => {
	const frame = frameAt(event);
	if (!frame) {
		get("tip").hidden = true;
		return;
	}
	if (selected !== frame.node)
		select(frame.node);
	showTip(frame, event.clientX, event.clientY);
});
get("frames").addEventListener("mouseleave", () => (get("tip").hidden = true));

document.addEventListener("keydown", (event) => {
	const isTyping = event.target.matches("input, select"), key = event.key;
	if (event.ctrlKey || event.altKey || event.metaKey)
		return;
	get("tip").hidden = true;
	if (isTyping) {
		if (key === "Escape" || (key === "Enter" && event.target.id === "search")) {
			get("view").focus();
			if (key === "Enter")
				nextMatch(1);
			event.preventDefault();
		}
		return;
	}
	if (key === "Enter" && event.target.matches("button, summary"))
		return;
	if (key.startsWith("Arrow"))
		select(neighbour(key), true);
	else if (key === "Enter" && selected)
		zoom(selected);
	else if (key === "Escape" || key === "Backspace")
		zoom(focus.up || root);
	else if (key === "0" || key === "Home")
		zoom(root);
	else if (key === "/")
		get("search").focus();
	else if (key === "n" || key === "N")
		nextMatch(key === "n" ? 1 : -1);
	else if (key === "i")
		toggle("inverted");
	else if (key === "r")
		toggle("reversed");
	else if (key === "o" && isDiff)
		toggle("old");
	else
		return;
	event.preventDefault();
});

function restore() {
	readState();
	renew();
}
addEventListener("popstate", restore);
addEventListener("hashchange", restore);
let resized = 0;
new ResizeObserver(() => {
	cancelAnimationFrame(resized);
	resized = requestAnimationFrame(() => {
		draw();
		if (isAtRoot)
			scrollToRoot();
	});
}).observe(get("view"));
fillChoices();
restore();
