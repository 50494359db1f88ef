import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

/** Names of styles are shorter than usual: they are in most lines of the page, and a hash packs badly. */
const cssHash = ({ hash, filename, css }) => `s${hash(filename ?? css).slice(0, 4)}`;

export default { preprocess: vitePreprocess({ script: true, style: false }), compilerOptions: { runes: true, discloseVersion: false, cssHash } };
