/** Facts about this installation, one row a name. */
export interface InstanceStore {
  find(name: string): Promise<string | null>
  /** Keeps the value unless one is there already; returns the one that is kept. Two nodes at once agree. */
  keep(name: string, value: string): Promise<string>
  replace(name: string, value: string): Promise<void>
  /** How many stored values each secret sealed, by the secret's id: what must be listed for this database. */
  sealedBy(): Promise<Map<string, number>>
}
