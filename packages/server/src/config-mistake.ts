/** Why a text is no value of its setting: the rest of a sentence that begins with the setting's name. */
export class Mistake extends Error {
  override readonly name = 'Mistake'
}
