// Numbers as people read them.

/** Seconds as a time of the trace: `1:02.345`, `1:00:02.345`. */
export function clock(seconds) {
  const sign = seconds < 0 ? "-" : "";
  let left = Math.abs(seconds);
  const hours = Math.floor(left / 3600);
  left -= hours * 3600;
  const minutes = Math.floor(left / 60);
  const rest = (left - minutes * 60).toFixed(3).padStart(6, "0");
  return hours ? `${sign}${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${sign}${minutes}:${rest}`;
}

/** How long something took: `12 ms`, `3.4 s`, `2 min 5 s`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** A size: `850 B`, `12.3 kB`, `1.2 MB`. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  if (count < 1e9) return `${(count / 1e6).toFixed(1)} MB`;
  return `${(count / 1e9).toFixed(2)} GB`;
}

/** A turn by the number that it has everywhere; what comes before the first prompt has none. */
export const turnName = (turn) => (turn.prompt ? `turn ${whole(turn.prompt)}` : turn.kind);

export const whole = (number) => number.toLocaleString("en");
export const plural = (count, noun, several = `${noun}s`) => `${whole(count)} ${count === 1 ? noun : several}`;
