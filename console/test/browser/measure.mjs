// What a page costs, measured so that a busy machine does not matter: by the CPU time of its main thread, and against a piece
// of work whose cost is known. Where a limit is in wall time, the work is timed beside it and the limit grows with it.

/** Milliseconds that the work below takes on the machine for which the budgets were written. */
const WORK_MS = 50;

/** Reads the counters of a page: CPU of its main thread in ms, heap in MB, and nodes. */
export async function counters(page) {
  const debug = await page.context().newCDPSession(page);
  await debug.send('Performance.enable', { timeDomain: 'threadTicks' });
  return {
    async read() {
      const found = Object.fromEntries((await debug.send('Performance.getMetrics')).metrics.map((it) => [it.name, it.value]));
      return { cpu: found.TaskDuration * 1_000, heap: found.JSHeapUsedSize / 1e6, nodes: found.Nodes };
    },
    /** CPU in ms that the page uses while `act` runs. */
    async cpuOf(act) {
      const before = await this.read();
      await act();
      return (await this.read()).cpu - before.cpu;
    },
    /** The heap in MB, without garbage. */
    async heap() {
      for (let times = 0; times < 3; times++) await debug.send('HeapProfiler.collectGarbage');
      return (await this.read()).heap;
    },
  };
}

/** How many times slower than that machine this one is now, in CPU time and in wall time; at least 1. `page` must be idle. */
export async function slowness(page) {
  const meter = await counters(page);
  let wall = Infinity, cpu = Infinity;
  for (let times = 0; times < 2; times++) {
    let took = 0;
    const used = await meter.cpuOf(async () => { took = await page.evaluate(work); });
    wall = Math.min(wall, took);
    cpu = Math.min(cpu, used);
  }
  return { cpu: Math.max(1, cpu / WORK_MS), wall: Math.max(1, wall / WORK_MS) };
}

/** Parses, sorts and joins, as the page does. Runs in the browser. */
function work() {
  const started = performance.now();
  const text = JSON.stringify(Array.from({ length: 2_000 }, (_, at) => ({ id: `r${at}`, name: `tool ${(at * 7919) % 2_000}`, ms: at % 97 })));
  let sum = 0;
  for (let times = 0; times < 60; times++) {
    const rows = JSON.parse(text);
    rows.sort((a, b) => (a.name < b.name ? -1 : 1));
    sum += new Map(rows.map((it) => [it.id, it])).size;
  }
  return performance.now() - started + (sum < 0 ? 1 : 0);
}

/** Measures up to `times` times, and stops at the first result within its limit. Returns the last `[value, limit]`. */
export async function bestOf(times, measure) {
  for (let left = times; ; left--) {
    const [value, limit] = await measure();
    if (value <= limit || left === 1) return [value, limit];
  }
}
