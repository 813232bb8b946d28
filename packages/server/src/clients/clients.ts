import { type App, isAppId, isClientUrl } from '../apps/app.ts'
import type { Clock } from '../clock.ts'
import type { KnownNetworks } from '../known-networks.ts'
import type { Storage } from '../store.ts'
import type { FindDocument } from './client-documents.ts'
import type { RegisterClient } from './registration.ts'

/**
 * The OAuth clients: apps that the operator registered and, where the operator allows it, apps that register themselves
 * or that a metadata document describes.
 */
export interface Clients {
  /**
   * The app with this client id: registered or, where the operator allows it, described by the document at the URL that
   * the id is. Null if there is none.
   *
   * @param network of the caller
   */
  find(clientId: string, network: string): Promise<App | null>
  /** Loads the registration of clients on first use; null if the operator does not allow it. */
  registration: (() => Promise<RegisterClient>) | null
  allowsDocuments: boolean
}

interface ClientSettings {
  clientRegistration: boolean
  clientMetadataDocuments: boolean
  webhookPrivateNetworks: readonly string[]
}

export function createClients(deps: {
  storage: Storage
  clock: Clock
  knownNetworks: KnownNetworks
  config: ClientSettings
}): Clients {
  const { storage, config } = deps
  let registration: Promise<RegisterClient> | undefined
  let findDocument: Promise<FindDocument> | undefined

  return {
    allowsDocuments: config.clientMetadataDocuments,
    registration: config.clientRegistration
      ? () => {
          registration ??= import('./registration.ts').then(({ createRegistration }) =>
            createRegistration(deps),
          )
          return registration
        }
      : null,
    async find(clientId, network) {
      if (isAppId(clientId)) return storage.store.apps.find(clientId)
      if (!config.clientMetadataDocuments || !isClientUrl(clientId)) return null
      findDocument ??= import('./client-documents.ts').then(({ createClientDocuments }) =>
        createClientDocuments({ ...deps, privateNetworks: config.webhookPrivateNetworks }),
      )
      return (await findDocument)(clientId, network)
    },
  }
}
