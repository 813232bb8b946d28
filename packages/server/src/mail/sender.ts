/** The sender of all mail; the name is the product's. */
export interface Sender {
  name: string
  address: string
}

export function domainOf(sender: Sender): string {
  return sender.address.slice(sender.address.lastIndexOf('@') + 1)
}

/** `"Keyway" <no-reply@example.com>`, RFC 5322 section 3.4; the name comes from the operator, not from a user. */
export function formatSender({ name, address }: Sender): string {
  const quotedName = name.replace(/[\r\n]+/g, ' ').replace(/["\\]/g, '\\$&')
  return quotedName ? `"${quotedName}" <${address}>` : address
}
