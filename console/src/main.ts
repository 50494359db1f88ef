import { mount } from 'svelte';
import App from './App.svelte';
import { applyPrefs } from './lib/prefs.svelte.ts';
import './tokens.css';

// A tab that is older than the gateway asks for chunks that are gone. Reloading once brings the new page.
addEventListener('vite:preloadError', () => {
  if (sessionStorage.getItem('wharf.reloaded') === '1') return;
  sessionStorage.setItem('wharf.reloaded', '1');
  location.reload();
});
applyPrefs();
const target = document.getElementById('app');
if (target) mount(App, { target });
