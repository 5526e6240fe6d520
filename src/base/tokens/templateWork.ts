/**
 * Runs a chat template within a budget. A template comes with somebody else's model, and its loops also depend on the
 * conversation. So everything costs a part of the budget before it is done: expressions, items of lists, and the
 * characters that filters, methods and operators read and write. Lists can contain each other such that the text of a
 * list doubles with each level, so a list costs as much as its text would.
 */
import { type Environment, Interpreter, type parse } from "@huggingface/jinja"

/** A parsed template. */
export type ParsedTemplate = ReturnType<typeof parse>

/** The budget of one rendering. An expression or an item of a list costs 1, which is about 200 ns. */
const mostWork = 3_000_000
/**
 * In the time of one expression, this many characters can be copied or compared, and `convertedAtOnce` can be converted
 * one by one.
 */
const copiedAtOnce = 64
const convertedAtOnce = 4
/**
 * The cost of an item of a loop: the library makes a scope with a dozen variables for each, even if the loop is empty.
 */
const workOfScope = 10
/**
 * At each place of a text, a search compares at most this many characters of the pattern, `comparedAtOnce` of them at a
 * time.
 */
const comparedInSearch = 256
const comparedAtOnce = 8
/** The largest number of characters of a text. */
const mostInText = 64 * 2 ** 20

/**
 * Declares the part of the library's interpreter that is used here, because the library's own declarations resolve only
 * in bundlers.
 */
interface LibraryInterpreter {
  readonly run: (program: ParsedTemplate) => { readonly value: unknown }
  evaluate(statement: unknown, environment: unknown): TemplateValue
}

const Library: new (environment: Environment) => LibraryInterpreter = Interpreter

/** A value of the library: its content is a text, a number, a list of values, or a map of them. */
interface TemplateValue {
  readonly type?: unknown
  readonly value: unknown
}

const isValue = (value: unknown): value is TemplateValue =>
  typeof value === "object" && value !== null && "value" in value

/** A part of a parsed template. */
interface TemplateNode {
  readonly [key: string]: unknown
}

const isNode = (value: unknown): value is TemplateNode => typeof value === "object" && value !== null

const get = (node: unknown, key: string): unknown => (isNode(node) ? node[key] : undefined)

const nothing: TemplateNode = {}

/** Converts a filter block to the filter expression that does the same. */
const asExpression = (node: TemplateNode): TemplateNode =>
  node.type === "FilterStatement"
    ? { type: "FilterExpression", operand: { type: "Program", body: node.body }, filter: node.filter }
    : node

/** Returns the name of an identifier, or the name of the function or filter that is called. */
const nameOf = (node: unknown): unknown =>
  get(node, "type") === "CallExpression" ? get(get(node, "callee"), "value") : get(node, "value")

/** A part of the template that is being evaluated. */
interface EvaluatedPart {
  readonly node: TemplateNode
  readonly type: unknown
  /** The values of the operands that were evaluated so far. */
  readonly operands: Array<TemplateValue>
  /** How often the result may repeat the arguments of a filter; undefined before the filter begins. */
  repeats: number | undefined
}

/** Returns the work of a search for a pattern in a text, by their lengths. */
const workOfSearch = (text: number, pattern: number): number =>
  (text * (1 + Math.min(pattern, comparedInSearch) / comparedAtOnce) + pattern) / copiedAtOnce

/** Filters and methods that take the same time whatever their operand is. */
const isFree = new Set<unknown>(["safe", "list", "first", "last", "length", "default", "abs", "bool", "get"])

/** If one of these is compared with a list, JavaScript converts the list to a text. */
const isPrimitive = new Set<unknown>(["string", "number", "boolean"])

const isCase = new Set<unknown>(["lower", "upper"])

const lengthOf = ({ value }: TemplateValue): number =>
  typeof value === "string" || Array.isArray(value) ? value.length : value instanceof Map ? value.size : 1

/** Renders one template once, within a budget. */
export class BoundedInterpreter extends Library {
  private readonly mostWork: number
  private done = 0
  private current: EvaluatedPart | undefined
  /** The methods that expressions have taken from a value, such as `content.split`. */
  private readonly methods = new WeakMap<object, { readonly receiver: TemplateValue; readonly name: unknown }>()
  /** The expressions of a call's arguments. */
  private readonly argumentsOf = new WeakMap<object, ReadonlySet<unknown>>()

  constructor(environment: Environment, work = mostWork) {
    super(environment)
    this.mostWork = work
  }

  override evaluate(statement: unknown, environment: unknown): TemplateValue {
    this.count(1)
    const outer = this.current
    const node = isNode(statement) ? asExpression(statement) : nothing
    const inner: EvaluatedPart = { node, type: node.type, operands: [], repeats: undefined }
    this.current = inner
    let result: TemplateValue
    try {
      result = super.evaluate(node === nothing ? statement : node, environment)
    } finally {
      this.current = outer
    }
    const isNew = inner.type === "CallExpression" || inner.type === "BinaryExpression" || isSlice(inner)
    if (isNew && Array.isArray(result.value)) this.count(result.value.length)
    if (typeof result.value === "string" && result.value.length > mostInText) {
      throw new Error(`the template makes a text of more than ${mostInText} characters`)
    }
    if (inner.type === "MemberExpression") this.rememberMethod(inner, result)
    if (outer !== undefined) this.countUse(outer, node, result)
    return result
  }

  private count(more: number): void {
    this.done += more
    if (!(this.done <= this.mostWork)) {
      throw new Error(
        `the template computes too much: more than ${this.mostWork} expressions and items of lists, where ${copiedAtOnce} characters count as one`,
      )
    }
  }

  /** Counts the work that the expression `outer` will do with the value of its part `node`, before it does it. */
  private countUse(outer: EvaluatedPart, node: TemplateNode, result: TemplateValue): void {
    switch (outer.type) {
      case "For": {
        const iterable = outer.node.iterable
        // A loop with a condition evaluates the condition for every item on its left.
        const select = get(iterable, "type") === "SelectExpression" ? iterable : undefined
        if (node === (select === undefined ? iterable : get(select, "lhs"))) this.count(workOfScope * lengthOf(result))
        else if (node !== get(select, "test")) this.countShown(result)
        return
      }
      case "BinaryExpression":
        outer.operands.push(result)
        return this.countOperator(outer)
      case "MemberExpression":
        outer.operands.push(result)
        if (typeof result.value !== "string") return
        if (isSlice(outer) && node === outer.node.object) this.count(result.value.length / convertedAtOnce)
        // JavaScript joins texts lazily, so reading a character copies the joined text first.
        else if (outer.node.computed === true) this.count(result.value.length / copiedAtOnce)
        return
      case "ObjectLiteral":
        // Keys of the same length must be compared.
        if (typeof result.value === "string") this.count(result.value.length / copiedAtOnce)
        return
      case "FilterExpression":
        outer.operands.push(result)
        if (outer.repeats === undefined) {
          const { filter } = outer.node
          outer.repeats = this.countFilter(result, nameOf(filter), get(filter, "type") === "CallExpression")
        } else {
          this.countFilterArgument(outer, result, outer.repeats)
        }
        return
      case "CallExpression":
        return this.countCall(outer, outer.node, node, result)
      case "CallStatement":
        return this.countCall(outer, outer.node.call, node, result)
      case "Set":
        if (node !== outer.node.value) this.countShown(result)
        return
      case "If":
        if (node !== outer.node.test) this.countShown(result)
        return
      case "Program":
        this.countShown(result)
        return
      case "TestExpression":
        // The tests `lower` and `upper` convert a text.
        if (typeof result.value === "string" && isCase.has(get(outer.node.test, "value"))) {
          this.count(result.value.length / copiedAtOnce)
        }
        return
      default:
        return
    }
  }

  /**
   * Counts a value that becomes a part of a text. A text costs nothing here: joining it is lazy, and whatever reads the
   * whole is counted.
   */
  private countShown(value: TemplateValue): void {
    if (typeof value.value !== "string") this.countText(value)
  }

  /**
   * Counts the text of a value as JSON, `times` times. Returns the number of its values, each weighted by its depth.
   */
  private countText(value: TemplateValue, times = 1): number {
    const waiting: Array<unknown> = [value]
    const depths = [1]
    let deep = 0
    while (waiting.length > 0) {
      const one = waiting.pop()
      const depth = depths.pop() ?? 1
      this.count(times)
      deep += depth
      const content = isValue(one) ? one.value : undefined
      if (typeof content === "string") this.count((times * content.length) / copiedAtOnce)
      const items: Iterable<unknown> = Array.isArray(content) ? content : content instanceof Map ? content.values() : []
      for (const item of items) {
        waiting.push(item)
        depths.push(depth + 1)
      }
      if (content instanceof Map) {
        for (const key of content.keys()) this.count((times * String(key).length) / copiedAtOnce)
      }
    }
    return deep
  }

  private countOperator({ node, operands }: EvaluatedPart): void {
    const [left, right] = operands
    const operator = get(node.operator, "value")
    if (right === undefined || operator === "and" || operator === "or") return
    const lists = [left, right].filter(({ value }) => Array.isArray(value)).length
    // Two lists are joined, or compared by identity, at no cost; a list and one text may be searched; all else is
    // converted to texts.
    if (lists === 2) return
    if (operator === "in" || operator === "not in") {
      const pattern = typeof left.value === "string" ? left.value.length : 1
      const items = lengthOf(right)
      this.count(lists === 1 ? items * (1 + pattern / copiedAtOnce) : workOfSearch(items, pattern))
    } else if (operator === "==" || operator === "!=") {
      const isMixed = lists === 1 && [left, right].some(({ value }) => isPrimitive.has(typeof value))
      const texts = [left, right].filter(({ value }) => typeof value === "string")
      for (const one of isMixed ? [left, right] : texts) this.countText(one)
    } else {
      this.countShown(left)
      this.countShown(right)
    }
  }

  /** Counts a filter without its arguments. Returns how often its result may repeat the arguments. */
  private countFilter(operand: TemplateValue, name: unknown, hasArguments: boolean): number {
    const { value } = operand
    if (isFree.has(name)) return 0
    if (typeof value === "string") {
      const byOne = name === "join" || name === "title" || (name === "tojson" && hasArguments)
      this.count(value.length / (byOne ? convertedAtOnce : copiedAtOnce))
      if (name === "join") return value.length
      return name === "indent" ? this.countFound(value, "\n") + 1 : 0
    }
    if (name === "tojson" || name === "string" || name === "join") return this.countText(operand)
    if (name === "sort" || name === "dictsort") return this.countSorting(operand)
    this.count(lengthOf(operand))
    // `unique` compares items by their texts.
    if (name === "unique") this.countSorting(operand)
    return lengthOf(operand)
  }

  private countFilterArgument({ node, operands }: EvaluatedPart, result: TemplateValue, repeats: number): void {
    const [operand, ...filterArguments] = operands
    const name = nameOf(node.filter)
    if (name === "replace") {
      this.countReplacing(operand.value, filterArguments)
    } else if (typeof result.value === "number") {
      if (name === "tojson" || name === "indent") this.count((repeats * Math.abs(result.value)) / copiedAtOnce)
    } else {
      this.countText(result, repeats)
    }
  }

  /** Counts the comparisons of sorting a list, by the lengths of the texts that its items are or hold. */
  private countSorting({ value }: TemplateValue): number {
    const items: ReadonlyArray<unknown> = Array.isArray(value) ? value : value instanceof Map ? [...value.values()] : []
    const comparisons = Math.ceil(Math.log2(items.length + 1))
    for (const item of items) {
      const content = get(item, "value")
      // If items are maps, the texts of an attribute are compared.
      const texts = content instanceof Map ? [...content.values()].map((one) => get(one, "value")) : [content]
      for (const text of texts) {
        this.count(comparisons * (1 + (typeof text === "string" ? text.length / convertedAtOnce : 0)))
      }
    }
    return items.length * comparisons
  }

  /** Counts a search for all occurrences of a pattern. Returns their number. */
  private countFound(text: string, pattern: string): number {
    this.count(workOfSearch(text.length, pattern.length))
    if (pattern === "") return text.length + 1
    let found = 0
    for (let at = text.indexOf(pattern); at >= 0; at = text.indexOf(pattern, at + pattern.length)) found++
    this.count(found)
    return found
  }

  private countReplacing(text: unknown, [old, replacement]: ReadonlyArray<TemplateValue>): void {
    if (replacement === undefined || typeof text !== "string" || typeof old.value !== "string") return
    const found = this.countFound(text, old.value)
    this.count(found * (1 + lengthOf(replacement) / copiedAtOnce) + text.length / copiedAtOnce)
  }

  /** Remembers a method that an expression takes from a value. */
  private rememberMethod(member: EvaluatedPart, result: TemplateValue): void {
    const [receiver, property] = member.operands
    if (receiver === undefined) return
    if (result.type !== "FunctionValue") return
    const isComputed = member.node.computed === true
    const name = isComputed ? property?.value : get(member.node.property, "value")
    this.methods.set(result, { receiver, name })
  }

  private countCall(outer: EvaluatedPart, call: unknown, node: TemplateNode, result: TemplateValue): void {
    if (node === get(call, "callee")) {
      const method = this.methods.get(result)
      if (method !== undefined) this.countMethod(method.receiver, method.name, outer.operands)
    } else if (this.isArgument(call, node)) {
      outer.operands.push(result)
    } else {
      // The body of the macro that is called.
      this.countShown(result)
    }
  }

  private countMethod(receiver: TemplateValue, name: unknown, callArguments: ReadonlyArray<TemplateValue>): void {
    const { value } = receiver
    if (typeof value !== "string") {
      this.countFilter(receiver, name, true)
    } else if (name === "replace") {
      this.countReplacing(value, callArguments)
    } else if (name === "split") {
      const separator = callArguments[0]?.value
      if (typeof separator === "string") this.countFound(value, separator)
      else this.count(value.length / convertedAtOnce)
    } else if (name === "startswith" || name === "endswith") {
      for (const one of [receiver, ...callArguments]) this.countText(one)
    } else {
      this.countFilter(receiver, name, true)
    }
  }

  private isArgument(call: unknown, node: TemplateNode): boolean {
    if (!isNode(call)) return false
    const callArguments = get(call, "args")
    const expressions =
      this.argumentsOf.get(call) ??
      new Set(
        (Array.isArray(callArguments) ? callArguments : []).map((one: unknown) => {
          const type = get(one, "type")
          if (type === "KeywordArgumentExpression") return get(one, "value")
          return type === "SpreadExpression" || type === "KeywordSpreadExpression" ? get(one, "argument") : one
        }),
      )
    this.argumentsOf.set(call, expressions)
    return expressions.has(node)
  }
}

const isSlice = ({ type, node }: EvaluatedPart): boolean =>
  type === "MemberExpression" && get(node.property, "type") === "SliceExpression"
