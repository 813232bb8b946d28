import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net'

export interface Caller {
  /** The canonical IP address of the client; IPv4-mapped IPv6 is IPv4. */
  address: string
  /** The network for rate limits: the IPv4 address, or the IPv6 /64. */
  network: string
  /** The User-Agent, at most 200 characters without control characters, or null. */
  client: string | null
}

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** The canonical form of an IP address (without zone, IPv6 compressed, IPv4-mapped as IPv4), or null. */
export function canonicalAddress(text: string): string | null {
  const withoutZone = text.split('%')[0]!
  if (isIPv4(withoutZone)) return withoutZone
  if (isIP(withoutZone) !== 6) return null
  const address = new SocketAddress({ address: withoutZone, family: 'ipv6' }).address
  const compressedAddress = new URL(`http://[${address}]`).hostname.slice(1, -1)
  return mappedIpv4(address) ?? mappedIpv4(compressedAddress) ?? compressedAddress
}

function mappedIpv4(address: string): string | null {
  const dottedMatch = MAPPED_IPV4.exec(address)
  if (dottedMatch) return dottedMatch[1]!
  const hexMatch = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address)
  if (!hexMatch) return null
  const value = (Number.parseInt(hexMatch[1]!, 16) << 16) | Number.parseInt(hexMatch[2]!, 16)
  return [24, 16, 8, 0].map(shift => (value >>> shift) & 255).join('.')
}

/** The network for rate limits. An IPv6 customer has a whole /64, so single addresses are meaningless. */
export function networkOf(address: string): string {
  return isIPv4(address) ? address : prefixOf(address, 64)
}

/** Prefix length of the largest network that one IPv6 customer usually gets: as large as 65,536 networks of /64. */
const SITE_BITS = 48
/** The limits of a site are those of a network multiplied by this. */
export const NETWORKS_PER_SITE = 16

/** The IPv6 /48 of an address; null for IPv4, where customers get single addresses. */
export function siteOf(address: string): string | null {
  return isIPv4(address) ? null : prefixOf(address, SITE_BITS)
}

/** The prefix of an address with this many bits, as `192.0.2.0/24` or `2001:db8::/48`. */
export function prefixOf(address: string, bits: number): string {
  if (isIPv4(address)) return `${mask(address.split('.').map(Number), 8, bits).join('.')}/${bits}`
  const groups = mask(expandIpv6(address), 16, bits).map(group => group.toString(16))
  return `${canonicalAddress(groups.join(':')) ?? address}/${bits}`
}

/** Keeps the leading `bits` of numbers of `width` bits each, and clears the others. */
function mask(numbers: readonly number[], width: number, bits: number): number[] {
  return numbers.map((number, index) => {
    const clearedBits = width - Math.max(0, Math.min(width, bits - index * width))
    return (number >> clearedBits) << clearedBits
  })
}

function expandIpv6(address: string): number[] {
  const [head = '', tail] = address.split('::')
  const leadingGroups = head ? head.split(':') : []
  const trailingGroups = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : 8 - leadingGroups.length - trailingGroups.length
  return [...leadingGroups, ...Array<string>(zeros).fill('0'), ...trailingGroups].map(group =>
    Number.parseInt(group, 16),
  )
}

/** Parses `10.0.0.0/8` or a bare address into canonical form, or null. Host bits must be zero. */
export function parseCidr(text: string): string | null {
  const [addressText = '', prefixText, ...rest] = text.split('/')
  const address = canonicalAddress(addressText)
  if (!address || addressText.includes('%') || rest.length > 0) return null
  const bits = isIPv4(address) ? 32 : 128
  if (prefixText !== undefined && !/^(0|[1-9]\d{0,2})$/.test(prefixText)) return null
  const prefix = prefixText === undefined ? bits : Number(prefixText)
  if (prefix > bits || !hostBitsAreZero(address, prefix)) return null
  return `${address}/${prefix}`
}

function hostBitsAreZero(address: string, prefix: number): boolean {
  const bytes = isIPv4(address)
    ? address.split('.').map(Number)
    : expandIpv6(address).flatMap(group => [group >> 8, group & 255])
  return bytes.every((byte, index) => (byte & (255 >> Math.max(0, Math.min(8, prefix - index * 8)))) === 0)
}

/** Matches addresses within any of the CIDRs. A CIDR with an invalid address matches nothing. */
export function networkMatcher(cidrs: readonly string[]): (address: string) => boolean {
  if (cidrs.length === 0) return () => false
  const networks = new BlockList()
  for (const cidr of cidrs) {
    const [address = '', prefix] = cidr.split('/')
    if (isIP(address)) networks.addSubnet(address, Number(prefix), isIPv4(address) ? 'ipv4' : 'ipv6')
  }
  return address => isIP(address) > 0 && networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/** Whether the CIDR `inner` is contained in one of the CIDRs `outer`. */
export function isWithin(inner: string, outer: readonly string[]): boolean {
  const [address = '', prefix] = inner.split('/')
  const widerCidrs = outer.filter(cidr => Number(cidr.split('/')[1]) <= Number(prefix))
  return networkMatcher(widerCidrs)(address)
}

export const isLoopback = networkMatcher(['127.0.0.0/8', '::1/128'])

/** Whether a host name means this machine: `localhost` and its subdomains, 127.0.0.0/8, `[::1]`. */
export function isLoopbackHost(hostname: string): boolean {
  const withoutBrackets = hostname.replace(/^\[(.*)\]$/, '$1')
  return /^(.+\.)?localhost$/i.test(withoutBrackets) || isLoopback(withoutBrackets)
}
