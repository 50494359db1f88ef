import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PrefixKey } from '../../src/lib/prefix_key.ts';

test('a prefix holds for the next key, for a while, and not for the one after', () => {
  const key = new PrefixKey();
  const take = (timeStamp: number) => key.take({ timeStamp });
  assert.equal(take(0), false);
  key.press({ timeStamp: 0 });
  assert.deepEqual([take(100), take(200)], [true, false]);
  // The end of the first pause does not end the second.
  key.press({ timeStamp: 2_900 });
  assert.equal(take(3_100), true);
  key.press({ timeStamp: 4_000 });
  assert.equal(take(7_001), false);
});
