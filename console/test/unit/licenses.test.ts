import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

test('packages in the page have licenses that allow it, and are named', () => {
  const named = read('src/licenses.txt');
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
  for (const name of [...Object.keys(dependencies), 'svelte']) {
    const { license } = JSON.parse(read(`node_modules/${name}/package.json`)) as { license: string };
    assert.match(license, /^(MIT|ISC|Apache-2\.0|BSD-[23]-Clause)$/, name);
    assert.ok(named.includes(`${name} (${license})`), `src/licenses.txt does not name ${name}`);
  }
});

test('versions are exact and the lock file names no address', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) assert.match(version, /^\d+\.\d+\.\d+$/, name);
  assert.ok(!/"resolved"/.test(read('package-lock.json')));
});
