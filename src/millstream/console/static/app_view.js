// What the pages show of an app: what is declared, what is stored and how it is, by dataset.
import { healthOf } from "./health.js";

export function datasetsOf(overview) {
  const standing = new Map(overview.status.datasets.map((each) => [each.name, each]));
  const nodes = overview.graph ? overview.graph.datasets : [];
  const declared = new Set(nodes.map((node) => node.name));
  const others = overview.status.datasets.filter((each) => !declared.has(each.name))
    .map((each) => ({ name: each.name, kind: each.kind, reads: [], read_by: [], key: [] }));
  const seen = new Map(overview.overview.datasets.map((each) => [each.name, each]));
  return [...nodes, ...others].map((node) => merged(node, standing.get(node.name), seen.get(node.name), overview));
}

function merged(node, standing, seen, overview) {
  const health = seen?.health, state = stateOf(node, standing, health, overview);
  const [level, word] = healthOf(state), isWrong = level === "warn" || level === "bad";
  const fault = health?.fault ?? standing?.fault ?? null;
  return {
    ...node,
    state, level, word,
    why: isWrong ? health?.why || fault?.what || null : null,
    fix: isWrong ? fault?.fix || health?.fix || null : null,
    code: fault?.code ?? null,
    at: fault?.file ? `${fault.file}:${fault.line}` : null,
    since: health?.since ?? null,
    fresh: seen?.fresh_s === null || seen?.fresh_s === undefined ? null : Math.round(seen.fresh_s),
    in: seen?.input_rate ?? null,
    out: seen?.output_rate ?? null,
    behindRows: seen?.behind_rows ?? null,
    behindS: seen?.behind_s ?? null,
    batchMs: seen?.batch_ms ?? null,
    targetMs: seen?.target_ms ?? null,
    recent: seen?.recent_input ?? [],
    recentBehind: seen?.recent_behind ?? [],
    stateRows: seen?.state_rows ?? null,
    stateBytes: seen?.state_bytes ?? null,
    completeTo: standing?.complete_to ?? seen?.complete_to ?? null,
    batch: Math.max(standing?.batch ?? -1, seen?.batch ?? -1),
    total: standing?.total ?? 0,
    aside: standing?.verdicts ?? {},
    version: standing?.version ?? null,
    committedAt: [standing?.committed_at, seen?.committed_at].filter(Boolean).sort().at(-1) ?? null,
  };
}

function stateOf(node, standing, health, { status: { driver } }) {
  if (node.kind === "view") return "inlined";
  if (standing?.trouble === "restarting") return "restarting";
  if (standing && ["damaged", "live"].includes(standing.state)) return standing.state;
  if (health && !["ok", "not running"].includes(health.state)) return health.state;
  if (standing?.state === "never ran") return driver ? "waiting" : "never ran";
  return driver ? "running" : "stopped";
}

// The answer first: one sentence, and its level.
export function answerOf({ overview, status: { driver } }, datasets) {
  const died = !driver && overview.run && !overview.run.ended_at;
  const levels = datasets.map((each) => each.level);
  const level = levels.includes("bad") || died ? "bad" : levels.includes("warn") ? "warn" : driver ? "ok" : "idle";
  return [level, overview.sentence];
}

export const subtitle = (each) => [each.kind, each.connector ?? each.mode].filter(Boolean).join(" · ");
export const attentionOf = (all) => all.filter((each) => each.level === "bad" || each.level === "warn");
export const asideTotal = (each) => Object.values(each.aside).reduce((sum, count) => sum + count, 0);
