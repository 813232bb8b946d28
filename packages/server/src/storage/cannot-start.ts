/** The settings ask for what this program cannot do. */
export class CannotStart extends Error {
  override readonly name = 'CannotStart'
}
