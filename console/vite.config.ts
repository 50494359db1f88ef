import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** The gateway that `npm run dev` talks to. */
const gateway = process.env.WHARF_URL ?? 'http://127.0.0.1:7373';

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../crates/wharf/console',
    emptyOutDir: true,
    // `light-dark()` stays as it is: these browsers have it.
    target: ['chrome125', 'firefox128', 'safari18'],
    assetsInlineLimit: 0,
    // One style sheet packs better than thirty, and pages do not flicker while theirs loads.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // What most pages share is one file, and so is what shows values: small files pack worse, and each costs a request.
    rolldownOptions: { output: { codeSplitting: { groups: [
      { name: 'shared', test: /\/src\/ui\/(Ago|Status|Prose|Problem|Stale|Countdown|Empty|Loading|Page|Copy|ShowText|BreakerState|CallStatus|ToolBadges|Dialog)\./ },
      { name: 'values', test: /\/src\/ui\/(Json|SourceError|Content|Rows)\./ },
      { name: 'history', test: /\/src\/(lib\/(diff|word_diff)|ui\/(JsonDiff|WordDiff|LockReview)|pages\/ToolHistory)\./ },
      { name: 'forms', test: /\/src\/ui\/(Completing|Question|SchemaForm)\./ },
      { name: 'lists', test: /\/src\/(lib\/(stats|journal)\.svelte|ui\/Bands)\./ },
    ] } } },
  },
  server: { proxy: Object.fromEntries(['/api', '/mcp', '/ready', '/docs', '/openapi.json'].map((path) => [path, gateway])) },
});
