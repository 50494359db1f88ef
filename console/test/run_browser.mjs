// Runs the browser tests, and a test that fails once more, alone. A browser for each test is much for two cores, and a
// test that fails for that reason must not hide what the others found. It is named at the end: it still has a race to fix.
import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

/** More failures than this are no accident. */
const MAX_RERUNS = 3;

/** Runs files, or some of their tests. Returns the tests that failed and how many passed. */
async function runFiles(files, options) {
  const failed = [];
  let passed = 0;
  const events = run({ files, timeout: 600_000, execArgv: ['--test-force-exit'], ...options });
  events.on('test:fail', ({ name, file }) => failed.push({ name, file }));
  events.on('test:pass', () => passed++);
  for await (const text of events.compose(spec)) process.stdout.write(text);
  return { failed, passed };
}

/** Runs one test alone. A file that ended early fails under its own name and is run as a whole. */
async function passesAlone({ name, file }) {
  const literal = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const { failed, passed } = await runFiles([file], file.endsWith(name) ? {} : { testNamePatterns: [new RegExp(`^${literal}$`)] });
  return failed.length === 0 && passed > 0;
}

const { failed, passed } = await runFiles(globSync('test/browser/*.test.mjs').sort(), { concurrency: 2 });
const broken = [];
if (failed.length <= MAX_RERUNS) for (const test of failed) if (!(await passesAlone(test))) broken.push(test);
if (failed.length > MAX_RERUNS) broken.push(...failed);
for (const test of failed) console.log(`${broken.includes(test) ? 'broken' : 'FLAKY, passed alone'}: ${test.name}`);
process.exit(broken.length || !passed ? 1 : 0);
