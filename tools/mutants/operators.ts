import { createHash } from 'node:crypto'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { requireTool } from '../install.ts'

/** A single change. Offsets are those of the file, whose types were replaced by spaces. */
export interface Mutant {
  /** Stable across other changes of the file: the enclosing function, the change, and its number among equal ones. */
  key: string
  operator: string
  start: number
  end: number
  text: string
  line: number
}

/** A node of ESTree. */
export interface Node {
  type: string
  start: number
  end: number
  [property: string]: unknown
}

interface Change extends Pick<Mutant, 'operator' | 'start' | 'end' | 'text'> {
  /** The expression of which the change replaces an operator or a method's name; absent for other changes. */
  whole?: Node
}

const { parse } = createRequire(import.meta.url)(await requireTool('acorn')) as {
  parse(code: string, options: object): Node
}

/**
 * All mutants of a source file, by the operators of StrykerJS
 * (https://stryker-mutator.io/docs/mutation-testing-elements/supported-mutators/), without regular expressions, and
 * with the removal of calls. Arguments of log calls and messages of errors are not mutated.
 */
export function mutantsOf(source: string): Mutant[] {
  const code = stripTypeScriptTypes(source)
  const changes: { change: Change; place: string }[] = []
  walk(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), [], '', (node, parents, place) => {
    for (const change of changesOf(node, parents, code)) changes.push({ change, place })
  })
  return withKeys(changes, code)
}

/** A source without types, comments and layout. */
export function codeOf(source: string): string {
  const code = stripTypeScriptTypes(source)
  const tokens: { start: number; end: number }[] = []
  parse(code, { ecmaVersion: 'latest', sourceType: 'module', onToken: tokens })
  return tokens.map(({ start, end }) => code.slice(start, end)).join(' ')
}

function walk(
  node: Node,
  parents: Node[],
  place: string,
  visit: (node: Node, parents: Node[], place: string) => void,
): void {
  if (
    UNMUTATED_TYPES.has(node.type) ||
    (node.type === 'ExportNamedDeclaration' && node.source) ||
    isForPeople(node, parents.at(-1))
  )
    return
  const innerPlace = [place, nameOf(node)].filter(Boolean).join('.')
  visit(node, parents, innerPlace)
  for (const [property, child] of Object.entries(node)) {
    if (node.type === 'Property' && property === 'key' && !node.computed) continue
    for (const each of Array.isArray(child) ? child : [child]) {
      if (isNode(each)) walk(each, [...parents, node], innerPlace, visit)
    }
  }
}

const UNMUTATED_TYPES = new Set(['ImportDeclaration', 'ExportAllDeclaration', 'TaggedTemplateExpression'])

function isForPeople(node: Node, parent: Node | undefined): boolean {
  if (!parent?.type) return false
  const isArgument = (parent.arguments as Node[] | undefined)?.includes(node) ?? false
  const callee = parent.callee as Node | undefined
  if (!isArgument || !callee) return false
  if (parent.type === 'NewExpression') return isText(node) && /Error$/.test(String(callee.name))
  const object = callee.type === 'MemberExpression' ? (callee.object as Node) : undefined
  return /^(log|console)$/.test(String(object?.name ?? (object?.property as Node | undefined)?.name))
}

function nameOf(node: Node): string {
  if (
    ![
      'FunctionDeclaration',
      'ClassDeclaration',
      'VariableDeclarator',
      'MethodDefinition',
      'Property',
      'PropertyDefinition',
    ].includes(node.type)
  )
    return ''
  const name = (node.id ?? node.key) as Node | null
  return String(name?.name ?? name?.value ?? '')
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

const COMPARISONS: Record<string, string[]> = {
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
}
const ARITHMETIC: Record<string, string> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '**': '*',
  '<<': '>>',
  '>>': '<<',
  '&': '|',
  '|': '&',
  '^': '&',
}
const LOGICAL: Record<string, string> = { '&&': '||', '||': '&&', '??': '&&' }
const ASSIGNMENTS: Record<string, string> = {
  '+=': '-=',
  '-=': '+=',
  '*=': '/=',
  '/=': '*=',
  '%=': '*=',
  '&&=': '||=',
  '||=': '&&=',
  '??=': '&&=',
}
const UNARY: Record<string, string> = { '!': '', '-': '+', '+': '-', '~': '' }
/** Methods that are replaced by their opposite, or, with null, removed from the expression. */
const METHODS: Record<string, string | null> = {
  some: 'every',
  every: 'some',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  toLowerCase: 'toUpperCase',
  toUpperCase: 'toLowerCase',
  min: 'max',
  max: 'min',
  filter: null,
  slice: null,
  sort: null,
  toSorted: null,
  reverse: null,
  toReversed: null,
  trim: null,
  trimStart: null,
  trimEnd: null,
}

function changesOf(node: Node, parents: Node[], code: string): Change[] {
  const parent = parents.at(-1)
  const replaceNode = (operator: string, text: string): Change => ({
    operator,
    start: node.start,
    end: node.end,
    text,
  })
  const replaceOperator = (operator: string, after: number, to: string): Change => {
    const start = code.indexOf(String(node.operator), after)
    return { operator, start, end: start + String(node.operator).length, text: to, whole: node }
  }
  const left = node.left as Node
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression':
      return conditionChanges(node.test as Node)
    case 'WhileStatement':
    case 'DoWhileStatement':
    case 'ForStatement':
      return node.test ? conditionChanges(node.test as Node).filter(({ text }) => text === 'false') : []
    case 'BinaryExpression': {
      const operator = String(node.operator)
      const comparisonChanges = (COMPARISONS[operator] ?? []).map(to =>
        replaceOperator('comparison', left.end, to),
      )
      if (comparisonChanges.length > 0)
        return [...comparisonChanges, ...(isCondition(node, parent) ? [] : conditionChanges(node))]
      const to = ARITHMETIC[operator]
      if (to === undefined || (operator === '+' && [left, node.right as Node].some(isText))) return []
      return [replaceOperator('arithmetic', left.end, to)]
    }
    case 'LogicalExpression': {
      const swap = replaceOperator('logical', left.end, LOGICAL[String(node.operator)]!)
      return node.operator === '??' || isCondition(node, parent) ? [swap] : [swap, ...conditionChanges(node)]
    }
    case 'AssignmentExpression': {
      const to = ASSIGNMENTS[String(node.operator)]
      return to === undefined || isText(node.right as Node)
        ? []
        : [replaceOperator('assignment', left.end, to)]
    }
    case 'UpdateExpression':
      return [
        replaceOperator(
          'update',
          node.prefix ? node.start : (node.argument as Node).end,
          node.operator === '++' ? '--' : '++',
        ),
      ]
    case 'UnaryExpression': {
      const to = UNARY[String(node.operator)]
      return to === undefined ? [] : [replaceOperator('unary', node.start, to)]
    }
    case 'Literal':
      if (typeof node.value === 'boolean') return [replaceNode('boolean', String(!node.value))]
      if (typeof node.value !== 'string' || parent?.type === 'ExpressionStatement') return []
      return [replaceNode('string', node.value === '' ? "'mutant'" : "''")]
    case 'TemplateLiteral':
      return node.end - node.start > 2 ? [replaceNode('string', '``')] : []
    case 'ArrayExpression':
      return (node.elements as Node[]).length > 0 ? [replaceNode('array', '[]')] : []
    case 'ObjectExpression':
      return (node.properties as Node[]).length > 0 ? [replaceNode('object', '{}')] : []
    case 'ArrowFunctionExpression': {
      const body = node.body as Node
      if (body.type === 'BlockStatement' || code.slice(body.start, body.end) === 'undefined') return []
      return [{ operator: 'arrow function', start: body.start, end: body.end, text: 'undefined' }]
    }
    case 'BlockStatement': {
      const isConstructor = (parents.at(-2) as Node | undefined)?.kind === 'constructor'
      if (
        (node.body as Node[]).length === 0 ||
        (isConstructor && code.slice(node.start, node.end).includes('super('))
      )
        return []
      return [replaceNode('block', '{}')]
    }
    case 'ExpressionStatement':
      return isCall(node.expression as Node) ? [replaceNode('call', ';')] : []
    case 'CallExpression':
      return [...optionalChainChanges(node.callee as Node), ...methodChanges()]
    case 'MemberExpression':
      return optionalChainChanges(node.object as Node)
    default:
      return []
  }

  function conditionChanges(test: Node): Change[] {
    const { start, end } = test
    return ['true', 'false']
      .filter(text => code.slice(start, end) !== text)
      .map(text => ({ operator: 'condition', start, end, text }))
  }

  function optionalChainChanges(before: Node): Change[] {
    if (!node.optional) return []
    const start = code.indexOf('?.', before.end)
    const isNamed = node.type === 'MemberExpression' && !node.computed
    return [{ operator: 'optional chaining', start, end: start + 2, text: isNamed ? '.' : '', whole: node }]
  }

  function methodChanges(): Change[] {
    const callee = node.callee as Node
    const property = callee.property as Node | undefined
    if (callee.type !== 'MemberExpression' || callee.computed || !property) return []
    const to = METHODS[String(property.name)]
    if (to === undefined) return []
    if (to !== null)
      return [{ operator: 'method', start: property.start, end: property.end, text: to, whole: callee }]
    return [{ operator: 'method', start: (callee.object as Node).end, end: node.end, text: '' }]
  }
}

function isCondition(node: Node, parent: Node | undefined): boolean {
  return parent?.test === node
}

function isText(node: Node): boolean {
  return node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string')
}

function isCall(node: Node): boolean {
  if (node.type === 'AwaitExpression' || node.operator === 'void') return isCall(node.argument as Node)
  if (node.type === 'ChainExpression') return isCall(node.expression as Node)
  return node.type === 'CallExpression' && (node.callee as Node).type !== 'Super'
}

const MAX_SHOWN_CHARACTERS = 70

function withKeys(changes: { change: Change; place: string }[], code: string): Mutant[] {
  const keyCounts = new Map<string, number>()
  return changes
    .filter(({ change }) => isParsable(code.slice(0, change.start) + change.text + code.slice(change.end)))
    .map(({ change, place }) => {
      const { whole, ...mutant } = change
      const replacedCode = `${whole ? `${shorten(code.slice(whole.start, whole.end))}: ` : ''}${shorten(code.slice(change.start, change.end))}`
      const baseKey = `${place || '(module)'}: ${replacedCode} → ${change.text || '(nothing)'}`
      const count = (keyCounts.get(baseKey) ?? 0) + 1
      keyCounts.set(baseKey, count)
      const line = code.slice(0, change.start).split('\n').length
      return { ...mutant, key: count > 1 ? `${baseKey} #${count}` : baseKey, line }
    })
}

function isParsable(code: string): boolean {
  try {
    parse(code, { ecmaVersion: 'latest', sourceType: 'module' })
    return true
  } catch {
    return false
  }
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  if (line.length <= MAX_SHOWN_CHARACTERS) return line
  return `${line.slice(0, MAX_SHOWN_CHARACTERS)}… ${createHash('sha256').update(line).digest('hex').slice(0, 6)}`
}
