export { fileTokenStore } from './file-token-store.js';
