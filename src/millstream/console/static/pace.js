// How often a page asks for what is slow to make: what is due again is asked for at the next tick.

export const ROWS_MS = 30000;

export function pace() {
  const asked = new Map();
  // Whether to ask: if what is wanted has changed and the last time was long enough ago.
  return (key, wanted, everyMs) => {
    const last = asked.get(key);
    if (last && (last.wanted === wanted || Date.now() - last.at < everyMs)) return false;
    asked.set(key, { wanted, at: Date.now() });
    return true;
  };
}
