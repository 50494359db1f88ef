// Two JSON values as one tree, with what was added, what is gone and what has changed.

export type Change = 'same' | 'added' | 'gone' | 'changed';
export interface DiffNode { name: string; change: Change; left?: unknown; right?: unknown; children?: DiffNode[] }

const MAX_NODES = 5_000;
const isTree = (it: unknown): it is object => typeof it === 'object' && it !== null;

export function diff(left: unknown, right: unknown, name = '', budget = { left: MAX_NODES }): DiffNode {
  if (--budget.left < 0) return { name, change: JSON.stringify(left) === JSON.stringify(right) ? 'same' : 'changed', left, right };
  if (isTree(left) && isTree(right) && Array.isArray(left) === Array.isArray(right)) {
    const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
    const children = names.map((each) => {
      const [inLeft, inRight] = [Object.hasOwn(left, each), Object.hasOwn(right, each)];
      const [one, other] = [(left as any)[each], (right as any)[each]];
      if (!inRight) return { name: each, change: 'gone' as const, left: one };
      if (!inLeft) return { name: each, change: 'added' as const, right: other };
      return diff(one, other, each, budget);
    });
    return { name, change: children.every((it) => it.change === 'same') ? 'same' : 'changed', left, right, children };
  }
  return { name, change: Object.is(left, right) ? 'same' : 'changed', left, right };
}

/** Counts the places where the two differ. */
export const changes = (node: DiffNode): number => (node.children ? node.children.reduce((sum, it) => sum + changes(it), 0) : node.change === 'same' ? 0 : 1);
