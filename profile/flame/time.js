// time.js - the recording over time, after page.js: what is selected there is what the rest of the page shows.  docs/flame.md.

const ROWS = 50; // of the heat map
const COLUMNS_MAX = 300, CPUS_MAX = 64, LANES_MAX = 16, LANE = 15, LABEL = 150, TABLE_MAX = 200;
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]; // s

const time = data.time;

// The samples as columns of numbers, stream after stream.
function decodeTime() {
	const count = time.streams.reduce((sum, stream) => sum + stream.count, 0);
	const columns = {at: new Uint32Array(count), length: new Uint32Array(count), weight: new Uint32Array(count), stream: new Uint32Array(count)};
	let i = 0;
	time.streams.forEach((stream, number) => {
		const bytes = atob(stream.data), lasts = sides[0].events[stream.event].lasts;
		let place = 0, at = 0;
		const next = () => {
			let value = 0, factor = 1, byte;
			do {
				byte = bytes.charCodeAt(place++);
				value += (byte & 127) * factor;
				factor *= 128;
			} while (byte & 128);
			return value;
		};
		for (let n = 0; n < stream.count; n++, i++) {
			at += next();
			columns.at[i] = at;
			columns.weight[i] = time.ranks[next()];
			columns.length[i] = lasts ? next() : 0;
			columns.stream[i] = number;
		}
		stream.data = "";
	});
	return columns;
}

function startTime() {
	const side = sides[0], columns = decodeTime(), total = Math.max(time.last, 1), second = 1e9 / time.unit;
	const whole = {weights: side.weights, lost: side.lost, events: side.events.map((event) => ({...event}))};
	const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const threadOf = (i) => whole.weights[5 * columns.weight[i] + 1];
	const clockOf = (units) => (units / second).toFixed(total > 100 * second ? 1 : 3) + " s";
	let range = null, view = "flame", shownFunction = -1, byTotal = false;

	// ---- the selection: the profile's weights are those of its samples ----

	// A part of an interval counts as its length; other samples as the mean of those of their stack.  The range is whole
	// units, as the address has it: who opens the address sees the same samples.
	function select(from, to) {
		range = from === null || to <= from ? null : [Math.max(0, Math.round(from)), Math.min(total, Math.round(to))];
		if (range && range[1] <= range[0])
			range[1] = range[0] + 1;
		side.lost = whole.lost;
		side.weights = whole.weights;
		side.events.forEach((event, i) => Object.assign(event, whole.events[i]));
		if (!range)
			return;
		const samples = new Float64Array(whole.weights.length / 5), lengths = new Float64Array(samples.length);
		side.events.forEach((event) => Object.assign(event, {samples: 0, weight: 0, lost: 0}));
		for (let i = 0; i < columns.at.length; i++) {
			const at = columns.at[i], end = at + columns.length[i], id = columns.weight[i];
			if (at >= range[1] || (columns.length[i] ? end <= range[0] : at < range[0]))
				continue;
			samples[id]++;
			lengths[id] += (Math.min(end, range[1]) - Math.max(at, range[0])) * time.unit;
		}
		side.weights = [];
		samples.forEach((count, id) => {
			if (!count)
				return;
			const [stack, thread, number, all, weight] = whole.weights.slice(5 * id, 5 * id + 5), event = side.events[number];
			const part = event.lasts ? Math.min(lengths[id], weight) : weight * count / all;
			side.weights.push(stack, thread, number, count, part);
			event.samples += count;
			event.weight += part;
		});
		side.lost = [0, 0, 0, 0];
		for (let i = 0; i < time.losses.length; i += 5) {
			const [at, kind, , event, count] = time.losses.slice(i, i + 5);
			if (at < range[0] || at >= range[1])
				continue;
			side.lost[kind] += count;
			if (kind === 1 && event >= 0)
				side.events[event].lost += count;
		}
	}

	function showRange() {
		const shown = side.events.reduce((sum, event) => sum + event.samples, 0), all = whole.events.reduce((sum, event) => sum + event.samples, 0);
		get("range").textContent = (range ? clockOf(range[0]) + " to " + clockOf(range[1]) : "0 to " + clockOf(total)) + ": " +
			number(shown) + (range ? " of " + number(all) : "") + " samples" + (time.untimed ? ", " + number(time.untimed) + " of unknown time" : "");
		get("all-time").disabled = !range;
	}

	// ---- the heat map: a column is a second or a part of one, its rows what is in it ----

	const nice = STEPS.find((step) => total / (step * second) <= (total > 30 * second ? COLUMNS_MAX : 60));
	const period = nice ? Math.round(second * nice) : Math.ceil(total / COLUMNS_MAX); // whatever times a file claims
	const columnCount = Math.ceil(total / period), rowHeight = 3;
	let cellWidth = 4; // px

	function isChosen(i, chosen) {
		return chosen[time.streams[columns.stream[i]].event] && (state.thread < 0 || threadOf(i) === state.thread);
	}

	function prepare(canvas, width, height) {
		const scale = devicePixelRatio || 1, context = canvas.getContext("2d");
		canvas.width = Math.round(width * scale);
		canvas.height = Math.round(height * scale);
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
		context.scale(scale, scale);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		return context;
	}

	function drawHeat() {
		const chosen = chosenEvents(side), cells = new Uint32Array(columnCount * ROWS);
		for (let i = 0; i < columns.at.length; i++)
			if (isChosen(i, chosen)) {
				const column = Math.min(Math.floor(columns.at[i] / period), columnCount - 1);
				cells[column * ROWS + Math.min(Math.floor((columns.at[i] - column * period) / period * ROWS), ROWS - 1)]++;
			}
		const most = cells.reduce((a, b) => Math.max(a, b), 1), height = ROWS * rowHeight;
		cellWidth = Math.max(2, Math.min(18, Math.floor(Math.min(450, innerWidth * 0.45 - 70) / columnCount)));
		const context = prepare(get("heat"), LABEL / 3 + columnCount * cellWidth + 4, height + 16);
		const hue = matchMedia("(prefers-color-scheme: dark)").matches ? [45, 90, 20, 50] : [18, 90, 92, -50];
		for (let column = 0; column < columnCount; column++)
			for (let row = 0; row < ROWS; row++) {
				const heat = Math.sqrt(cells[column * ROWS + row] / most);
				context.fillStyle = heat ? `hsl(${hue[0]} ${hue[1]}% ${hue[2] + hue[3] * heat}%)` : css("--panel");
				context.fillRect(LABEL / 3 + column * cellWidth, height - (row + 1) * rowHeight, cellWidth - 0.5, rowHeight);
			}
		context.fillStyle = css("--faint");
		const step = period / second, decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
		context.fillText("0", 2, height - 6);
		context.fillText(step >= 1 ? step + " s" : Math.round(1000 * step) + " ms", 2, 6);
		const every = Math.ceil(60 / cellWidth);
		for (let column = 0; column < columnCount && (!column || column * cellWidth + 30 < columnCount * cellWidth); column += every)
			context.fillText((column * step).toFixed(decimals) + " s", LABEL / 3 + column * cellWidth, height + 9);
		if (!range)
			return;
		// What is selected: its columns, the first and the last in part.
		context.strokeStyle = css("--ink");
		context.lineWidth = 1.5;
		const first = Math.floor(range[0] / period), last = Math.min(Math.floor((range[1] - 1) / period), columnCount - 1);
		for (let column = first; column <= last; column++) {
			const low = column === first ? (range[0] - first * period) / period : 0, high = column === last ? Math.min(1, (range[1] - last * period) / period) : 1;
			context.strokeRect(LABEL / 3 + column * cellWidth + 0.5, height - high * height, cellWidth - 1, Math.max(2, (high - low) * height));
		}
	}

	// ---- lanes: CPUs, then the threads with most samples ----

	function laneNames() {
		const cpus = [...new Set(time.streams.map((stream) => stream.cpu))].sort((a, b) => a - b);
		const samples = new Map();
		for (let i = 0; i < columns.at.length; i++)
			samples.set(threadOf(i), (samples.get(threadOf(i)) || 0) + 1);
		const threads = [...samples].sort((a, b) => b[1] - a[1]).map(([thread]) => thread);
		if (cpus.length === 1 && cpus[0] < 0) // a recording of threads
			cpus.pop();
		const lanes = cpus.slice(0, CPUS_MAX).map((cpu) => ({cpu, text: cpu < 0 ? "CPU unknown" : "CPU " + cpu}));
		threads.slice(0, LANES_MAX).forEach((thread) => lanes.push({thread, text: side.threads[thread][2] + (side.threads[thread][1] < 0 ? "" : " " + side.threads[thread][1])}));
		const more = Math.max(cpus.length - CPUS_MAX, 0) + Math.max(threads.length - LANES_MAX, 0);
		if (more)
			lanes.push({text: "and " + number(more) + " more"});
		return lanes;
	}
	const lanes = laneNames();
	const laneOf = {cpu: new Map(lanes.map((lane, i) => [lane.cpu, i])), thread: new Map(lanes.map((lane, i) => [lane.thread, i]))};
	let laneWidth = 400;

	function drawLanes() {
		const chosen = chosenEvents(side), context = prepare(get("lanes"), Math.max(get("lanes-side").clientWidth - 2, 300), lanes.length * LANE + 14);
		const width = laneWidth = parseInt(get("lanes").style.width, 10) - LABEL, density = lanes.map(() => new Uint32Array(width));
		const x = (units) => Math.min(Math.floor(units / total * width), width - 1);
		context.fillStyle = css("--panel");
		lanes.forEach((lane, i) => context.fillRect(LABEL, i * LANE + 1, width, LANE - 2));
		context.fillStyle = css("--command");
		const spans = []; // over what waits
		for (let i = 0; i < columns.at.length; i++) {
			const lane = laneOf.thread.get(threadOf(i)), at = columns.at[i];
			if (columns.length[i] && lane !== undefined) { // the lower half
				const place = [LABEL + x(at), Math.ceil((lane + 0.5) * LANE), x(at + columns.length[i]) - x(at), Math.floor(LANE / 2) - 1];
				if (WAITS.includes(side.events[time.streams[columns.stream[i]].event].name))
					context.fillRect(place[0], place[1], Math.max(place[2], 0.5), place[3]);
				else
					spans.push(place);
			}
			if (columns.length[i] || !isChosen(i, chosen))
				continue;
			const cpu = laneOf.cpu.get(time.streams[columns.stream[i]].cpu);
			if (cpu !== undefined)
				density[cpu][x(at)]++;
			if (lane !== undefined)
				density[lane][x(at)]++;
		}
		const most = density.reduce((a, row) => row.reduce((b, n) => Math.max(b, n), a), 1);
		context.fillStyle = css("--mark");
		density.forEach((row, lane) => row.forEach((n, i) => {
			if (!n)
				return;
			context.globalAlpha = 0.25 + 0.75 * Math.sqrt(n / most);
			context.fillRect(LABEL + i, lane * LANE + 1, 1, lanes[lane].thread === undefined ? LANE - 2 : LANE / 2 - 1);
		}));
		context.globalAlpha = 1;
		// Spans are outlines, whatever colours one sees.
		context.fillStyle = `rgb(${css("--less")})`;
		for (const [left, top, long, high] of spans) {
			context.fillRect(left, top, Math.max(long, 1), 1);
			context.fillRect(left, top + high - 1, Math.max(long, 1), 1);
			context.fillRect(left, top, 1, high);
			context.fillRect(left + Math.max(long - 1, 0), top, 1, high);
		}
		// Losses and throttling, where they happened.
		for (let i = 0; i < time.losses.length; i += 5) {
			const [at, kind, cpu] = time.losses.slice(i, i + 5), lane = laneOf.cpu.get(cpu);
			if (at < 0)
				continue;
			context.fillStyle = kind === 2 ? "#e08a00" : `rgb(${css("--more")})`;
			context.fillRect(LABEL + x(at) - 1, lane === undefined ? 0 : lane * LANE, 3, lane === undefined ? lanes.length * LANE : LANE);
		}
		context.fillStyle = css("--ink");
		lanes.forEach((lane, i) => context.fillText(lane.text.slice(0, 24), 2, i * LANE + LANE / 2, LABEL - 6));
		context.fillStyle = css("--faint");
		for (let i = 0; i <= 4; i++) {
			context.textAlign = i === 4 ? "right" : "left";
			context.fillText(clockOf(total * i / 4), LABEL + width * i / 4, lanes.length * LANE + 7);
		}
		context.textAlign = "left";
		if (!range)
			return;
		context.fillStyle = css("--ink");
		context.globalAlpha = 0.14;
		context.fillRect(LABEL, 0, x(range[0]), lanes.length * LANE);
		context.fillRect(LABEL + x(range[1]), 0, width - x(range[1]), lanes.length * LANE);
		context.globalAlpha = 1;
	}

	// ---- tables: each function once on a stack ----

	const isOn = (node) => {
		for (let up = node.up; up; up = up.up)
			if (up.id === node.id)
				return true;
		return false;
	};

	function sums() {
		const own = new Map(), all = new Map();
		for (const node of nodes.slice(1)) {
			if (node.own[0])
				own.set(node.id, (own.get(node.id) || 0) + node.own[0]);
			if (!isOn(node))
				all.set(node.id, (all.get(node.id) || 0) + node.w[0]);
		}
		return {own, all};
	}

	function cell(row, text, name) {
		const element = row.insertCell();
		element.textContent = text;
		element.className = name;
		return element;
	}

	// rows: [function, sum, sum, ...]; the first two columns of all tables are amounts.
	function addTable(caption, heads, rows, hint) {
		const table = document.createElement("table"), head = table.createTHead().insertRow();
		table.createCaption().textContent = caption;
		heads.forEach((text) => {
			const element = document.createElement("th");
			element.className = text === "Function" || text === "Object" ? "" : "number";
			if (hint && (text === "Self" || text === "Total")) {
				const button = document.createElement("button");
				button.type = "button";
				button.textContent = text;
				button.addEventListener("click", () => {
					byTotal = text === "Total";
					showTable();
				});
				element.append(button);
			} else {
				element.textContent = text;
			}
			head.append(element);
		});
		const body = table.createTBody();
		for (const [id, ...amounts] of rows.slice(0, TABLE_MAX)) {
			const row = body.insertRow();
			row.dataset.id = id;
			row.tabIndex = 0;
			amounts.forEach((amount) => cell(row, percent(amount, root.w[0]), "number"));
			cell(row, functions[id].label.slice(0, LABEL_MAX), "name");
			cell(row, functions[id].short || "", "name");
		}
		get("table").append(table);
		if (rows.length > TABLE_MAX) {
			const more = document.createElement("p");
			more.textContent = "and " + plural(rows.length - TABLE_MAX, "function") + " more";
			get("table").append(more);
		}
	}

	function showTable() {
		const {own, all} = sums();
		get("table").replaceChildren();
		if (view === "table") {
			const rows = [...all].filter(([id]) => functions[id].kind < COMMAND && (!pattern || pattern.test(functions[id].label)))
				.map(([id, sum]) => [id, own.get(id) || 0, sum]).sort((a, b) => (byTotal ? b[2] - a[2] : b[1] - a[1]) || b[2] - a[2]);
			addTable(plural(rows.length, "function") + (pattern ? " that match the search" : "") + ", by " + (byTotal ? "total" : "self"), ["Self", "Total", "Function", "Object"], rows, true);
			return;
		}
		if (!all.has(shownFunction))
			shownFunction = [...own].filter(([id]) => functions[id].kind < COMMAND).sort((a, b) => b[1] - a[1]).map(([id]) => id)[0] ?? -1;
		if (shownFunction < 0)
			return;
		const callers = new Map(), callees = new Map();
		for (const node of nodes) {
			if (node.id !== shownFunction)
				continue;
			if (node.up && node.up !== root && !isOn(node))
				callers.set(node.up.id, (callers.get(node.up.id) || 0) + node.w[0]);
			node.list.forEach((child) => child.id !== shownFunction && callees.set(child.id, (callees.get(child.id) || 0) + child.w[0]));
		}
		const sorted = (map) => [...map].sort((a, b) => b[1] - a[1]);
		addTable("called by", ["Time", "Function", "Object"], sorted(callers));
		addTable(functions[shownFunction].label.slice(0, LABEL_MAX), ["Self", "Total", "Function", "Object"], [[shownFunction, own.get(shownFunction) || 0, all.get(shownFunction)]]);
		addTable("calls", ["Time", "Function", "Object"], sorted(callees));
	}

	// ---- all of it ----

	function showView() {
		document.querySelectorAll("#when [data-view]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.view === view)));
		get("table").hidden = view === "flame";
		get("view").hidden = view !== "flame";
		get("drawn").hidden = view !== "flame";
		if (view === "flame")
			draw();
		else
			showTable();
	}

	function setView(name) {
		view = name;
		if (view !== "flame" && state.reversed)
			toggle("reversed");
		showView();
		writeState();
	}

	addState = (to) => {
		if (range) {
			to.set("from", range[0]);
			to.set("to", range[1]);
		}
		if (view !== "flame")
			to.set("view", view);
	};

	function apply(from, to, isLast) {
		select(from, to);
		showRange();
		drawHeat();
		drawLanes();
		if (!isLast)
			return;
		renew();
		showView();
		writeState();
	}

	function drag(canvas, unitsAt) {
		let began = null;
		const of = (event) => {
			const box = canvas.getBoundingClientRect();
			return unitsAt(event.clientX - box.left, event.clientY - box.top);
		};
		canvas.addEventListener("pointerdown", (event) => {
			began = of(event);
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", (event) => began !== null && apply(Math.min(began[0], of(event)[0]), Math.max(began[1], of(event)[1]), false));
		canvas.addEventListener("pointerup", (event) => {
			if (began === null)
				return;
			apply(Math.min(began[0], of(event)[0]), Math.max(began[1], of(event)[1]), true);
			began = null;
		});
		canvas.addEventListener("keydown", (event) => {
			const step = range ? Math.max(1, Math.round((range[1] - range[0]) / 4)) : Math.round(total / 10), [from, to] = range || [0, step];
			const way = event.key === "ArrowLeft" ? -step : event.key === "ArrowRight" ? step : 0;
			if (!way)
				return;
			event.preventDefault();
			event.stopPropagation();
			if (!range)
				apply(0, step, true);
			else if (event.shiftKey)
				apply(from, Math.max(from + 1, to + way), true);
			else if (from + way >= 0 && to + way <= total)
				apply(from + way, to + way, true);
		});
	}
	// A place is an interval: a cell of the heat map, a pixel of a lane.
	drag(get("heat"), (x, y) => {
		const column = Math.max(0, Math.min(Math.floor((x - LABEL / 3) / cellWidth), columnCount - 1)), row = Math.max(0, Math.min(ROWS - 1 - Math.floor(y / rowHeight), ROWS - 1));
		const at = column * period + row * period / ROWS;
		return [at, at + period / ROWS];
	});
	drag(get("lanes"), (x) => {
		const at = Math.max(0, Math.min(x - LABEL, laneWidth)) / laneWidth * total;
		return [at, at + total / laneWidth];
	});
	get("all-time").addEventListener("click", () => apply(null, 0, true));
	get("when").addEventListener("click", (event) => event.target.dataset.view && setView(event.target.dataset.view));
	get("table").addEventListener("click", (event) => {
		const row = event.target.closest("tr[data-id]");
		if (!row)
			return;
		shownFunction = Number(row.dataset.id);
		setView("sandwich");
	});
	get("search").addEventListener("input", () => view !== "flame" && showTable());
	for (const name of ["event", "thread", "weigh"])
		get(name).addEventListener("change", () => {
			drawHeat();
			drawLanes();
			showView();
		});
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select"))
			return;
		if (event.key === "Enter" && event.target.matches("tr[data-id]"))
			event.target.click();
		else if (event.key === "a")
			apply(null, 0, true);
		else if (event.key === "t")
			setView(view === "table" ? "flame" : "table");
		else if (event.key === "w")
			setView(view === "sandwich" ? "flame" : "sandwich");
	});

	function restoreTime() {
		const given = new URLSearchParams(location.hash.slice(1)), [from, to] = [Number(given.get("from") ?? NaN), Number(given.get("to") ?? NaN)];
		view = ["table", "sandwich"].find((name) => name === given.get("view")) || "flame";
		get("time").hidden = false;
		apply(from >= 0 && to > from && to <= total ? from : null, to, true);
	}
	addEventListener("popstate", restoreTime);
	let width = 0;
	new ResizeObserver(() => {
		if (width === innerWidth)
			return;
		width = innerWidth;
		drawLanes();
	}).observe(document.body);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
		drawHeat();
		drawLanes();
	});
	restoreTime();
}

if (time && time.streams.length)
	startTime();
