/** Values that belong to this installation, by name. */
export interface InstanceStore {
  find(name: string): Promise<string | null>
  /** Inserts the value unless one exists; returns the stored one. Concurrent callers get the same value. */
  keep(name: string, value: string): Promise<string>
  replace(name: string, value: string): Promise<void>
  /** The number of stored values that each secret sealed, by the secret's id. */
  sealedBy(): Promise<Map<string, number>>
}
