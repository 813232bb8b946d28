import { createRequire, stripTypeScriptTypes } from 'node:module'
import { requireTool } from '../install.ts'
import type { Mutant, Node } from './operators.ts'

const { parse } = createRequire(import.meta.url)(await requireTool('acorn')) as {
  parse(code: string, options: object): Node
}

/** The function that every switch calls, defined by switch.cjs before any module is loaded. */
const SWITCH = '__keywayMutant'

/** A place whose code can be switched at run time. */
interface Slot {
  kind: 'expression' | 'statement' | 'block'
  start: number
  end: number
  /** Whether the place is executed only when the module is loaded. */
  isStatic: boolean
  /** Whether the place begins a statement, where a parenthesis would continue the previous line. */
  beginsStatement: boolean
  mutants: { id: number; text: string }[]
  inner: Slot[]
}

export interface InstrumentedModule {
  code: string
  /** Ids of mutants that are executed only when the module is loaded. */
  staticIds: Set<number>
}

/**
 * Returns a module with all of its mutants, each behind a switch that is evaluated at run time (“mutant schemata”,
 * https://doi.org/10.1145/154183.154265), so that one load of the module is enough for all.
 *
 * @param idOf  the number that activates a mutant
 */
export function instrument(
  source: string,
  mutants: readonly Mutant[],
  idOf: (mutant: Mutant) => number,
): InstrumentedModule {
  const code = stripTypeScriptTypes(source)
  const root: Slot = {
    kind: 'statement',
    start: 0,
    end: code.length,
    isStatic: true,
    beginsStatement: false,
    mutants: [],
    inner: [],
  }
  collectSlots(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), root)
  const staticIds = new Set<number>()
  for (const mutant of mutants) {
    const slot = innermostSlot(root, mutant)
    if (slot === root) throw new Error(`line ${mutant.line} cannot be switched: ${mutant.key}`)
    const text = code.slice(slot.start, mutant.start) + mutant.text + code.slice(mutant.end, slot.end)
    if (slot.kind !== 'expression' && !hasRangeOf(slot, mutant))
      throw new Error(`only the whole statement of line ${mutant.line} can be removed: ${mutant.key}`)
    slot.mutants.push({ id: idOf(mutant), text })
    if (slot.isStatic) staticIds.add(idOf(mutant))
  }
  return { code: render(root, code), staticIds }
}

function innermostSlot(slot: Slot, mutant: Mutant): Slot {
  // Without semicolons a statement and its expression have the same range; the mutant that
  // removes a call belongs to the statement.
  if (slot.kind === 'statement' && mutant.operator === 'call' && hasRangeOf(slot, mutant)) return slot
  const inner = slot.inner.find(({ start, end }) => start <= mutant.start && mutant.end <= end)
  return inner ? innermostSlot(inner, mutant) : slot
}

function hasRangeOf(slot: Slot, { start, end }: Mutant): boolean {
  return slot.start === start && slot.end === end
}

function collectSlots(root: Node, rootSlot: Slot): void {
  visit(root, undefined, '', rootSlot, false)

  function visit(
    node: Node,
    parent: Node | undefined,
    property: string,
    outerSlot: Slot,
    isUnswitchable: boolean,
  ): void {
    const kind = isUnswitchable ? undefined : kindOf(node, parent, property)
    const isStatic =
      outerSlot.isStatic &&
      !FUNCTION_TYPES.has(node.type) &&
      !(node.type === 'PropertyDefinition' && !node.static)
    const slot: Slot =
      kind === undefined
        ? outerSlot
        : {
            kind,
            start: node.start,
            end: node.end,
            isStatic,
            beginsStatement: kind === 'statement' && isStatementList(parent),
            mutants: [],
            inner: [],
          }
    if (slot !== outerSlot) outerSlot.inner.push(slot)
    // A function may be created while its module loads, but its body runs later, so inside it the slot is not static.
    const childSlot = slot.isStatic === isStatic ? slot : { ...slot, isStatic }
    for (const [name, child] of Object.entries(node)) {
      for (const each of Array.isArray(child) ? child : [child]) {
        if (isNode(each)) visit(each, node, name, childSlot, isPartOfChain(node, name, isUnswitchable))
      }
    }
  }
}

/** `a?.b` ends the whole chain `a?.b.c` if `a` is missing, so only the whole chain can be switched. */
function isPartOfChain(node: Node, property: string, isUnswitchable: boolean): boolean {
  if (node.type === 'ChainExpression') return true
  return isUnswitchable && (property === 'object' || property === 'callee')
}

function kindOf(node: Node, parent: Node | undefined, property: string): Slot['kind'] | undefined {
  if (node.type === 'BlockStatement') return 'block'
  if (node.type === 'ExpressionStatement') return node.directive === undefined ? 'statement' : undefined
  if (node.type === 'Identifier') return property === 'test' || property === 'body' ? 'expression' : undefined
  if (!/(Expression|Literal)$/.test(node.type) || !parent) return undefined
  switch (parent.type) {
    case 'CallExpression':
      return property === 'callee' && /^(Member|Function|Arrow)/.test(node.type) ? undefined : 'expression'
    case 'AssignmentExpression':
    case 'ForInStatement':
    case 'ForOfStatement':
      return property === 'left' ? undefined : 'expression'
    case 'Property':
    case 'MethodDefinition':
    case 'PropertyDefinition':
      if (property === 'key') return parent.computed ? 'expression' : undefined
      return parent.type === 'MethodDefinition' || parent.method || (parent.kind && parent.kind !== 'init')
        ? undefined
        : 'expression'
    case 'UpdateExpression':
    case 'TaggedTemplateExpression':
    case 'ImportDeclaration':
    case 'ImportAttribute':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return undefined
    case 'UnaryExpression':
      return parent.operator === 'delete' ? undefined : 'expression'
    default:
      return 'expression'
  }
}

const FUNCTION_TYPES = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

function isStatementList(parent: Node | undefined): boolean {
  return ['Program', 'BlockStatement', 'StaticBlock', 'SwitchCase'].includes(parent?.type ?? '')
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

function render(slot: Slot, code: string): string {
  let text = ''
  let offset = slot.start
  for (const inner of slot.inner.toSorted((a, b) => a.start - b.start)) {
    text += code.slice(offset, inner.start) + render(inner, code)
    offset = inner.end
  }
  return withSwitches(slot, text + code.slice(offset, slot.end))
}

function withSwitches({ kind, mutants, beginsStatement }: Slot, text: string): string {
  const noneIsActive = mutants.map(({ id }) => `!${SWITCH}(${id})`).join('&&')
  if (kind === 'expression') {
    if (mutants.length === 0) return text
    return mutants.reduce((rest, { id, text }) => `(${SWITCH}(${id})?(${text}):${rest})`, `(${text})`)
  }
  if (mutants.length === 0) return beginsStatement && /^[([`]/.test(text) ? `;${text}` : text
  return kind === 'block' ? `{if(${noneIsActive})${text}}` : `{if(${noneIsActive}){${text}}}`
}
