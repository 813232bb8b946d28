/** Named values of this installation, such as the address pepper. */
export interface InstanceStore {
  find(name: string): Promise<string | null>
  /** Inserts the value unless one exists, and returns the stored one. Concurrent callers get the same value. */
  findOrInsert(name: string, value: string): Promise<string>
  replace(name: string, value: string): Promise<void>
  /** How many stored values are sealed with each secret, by the secret's id. Values of ended sessions are not counted. */
  countBySecret(): Promise<Map<string, number>>
}
