// One clock for everything that counts down or says how long ago: one timer, however many places show it.

class Clock {
  now = $state(Date.now());
  constructor() {
    setInterval(() => { if (!document.hidden) this.now = Date.now(); }, 1_000);
    document.addEventListener('visibilitychange', () => { this.now = Date.now(); });
  }
}
export const ticking = new Clock();
