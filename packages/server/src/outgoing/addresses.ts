import { isIPv4 } from 'node:net'
import { canonicalAddress, networkMatcher } from '../network.ts'

/** Special-purpose IPv4 addresses, which are not part of the public Internet (RFC 6890, registries of IANA). */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]
/** The part of the IPv6 address space from which public unicast addresses are assigned. */
const GLOBAL_IPV6 = '2000::/3'
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

export interface AddressRule {
  /** Whether the address is public: reachable from the whole Internet. IPv4 in IPv6 counts as IPv4. */
  isPublic(address: string): boolean
  /** Whether the address is in one of the networks that the operator listed. */
  isListed(address: string): boolean
}

export function createAddressRule(listedNetworks: readonly string[]): AddressRule {
  const isSpecial = networkMatcher([...SPECIAL_IPV4, ...SPECIAL_IPV6])
  const isAssigned = networkMatcher([GLOBAL_IPV6])
  const isListed = networkMatcher(listedNetworks)
  return {
    isPublic: text => {
      const address = canonicalAddress(text)
      return address !== null && !isSpecial(address) && (isIPv4(address) || isAssigned(address))
    },
    isListed: text => {
      const address = canonicalAddress(text)
      return address !== null && isListed(address)
    },
  }
}
