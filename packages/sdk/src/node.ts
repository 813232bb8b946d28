export { type FileTokenStoreOptions, fileTokenStore } from './file-token-store.ts'
