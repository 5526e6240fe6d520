/** Writes the functions of a module as C. Nothing in the text comes from names: functions and locals are numbered. */
import type { Lanes } from "../graph/wasm/function.ts"
import type { Division } from "../graph/wasm/slices.ts"
import type { ValueType } from "../wasm/encode.ts"
import type { DecodedFunction, Step, Value } from "./code.ts"
import { decode } from "./decode.ts"
import { type Merged, merged } from "./merge.ts"
import { prelude } from "./prelude.ts"
import { threadsIn } from "./threads.ts"
import { separated } from "./webs.ts"

/**
 * Writes a module's functions as a file in C. The functions whose export names are listed get the names `entry_0`,
 * `entry_1` and so on; they take the address of the memory. With more lanes, neighbouring vectors are combined.
 */
export const cOf = (
  bytes: Uint8Array,
  entries: ReadonlyArray<string>,
  { division, lanes }: { readonly lanes: Lanes; readonly division?: Division | undefined },
): string => {
  const replaced = division === undefined ? [] : [division.fork, division.awaitTurn, division.endTurn]
  const omitted = division?.others ?? []
  const module = decode(bytes, { skipped: [...replaced, ...omitted], dispatching: division?.slice })
  const signatures = module.functions.flatMap((fn, index) =>
    omitted.includes(index) ? [] : [`static ${signatureOf(fn, index)};`],
  )
  const bodies = module.functions.flatMap((fn, index) =>
    omitted.includes(index) || replaced.includes(index)
      ? []
      : [new FunctionPrinter(merged(separated(fn), lanes), lanes).print(index)],
  )
  const threads = division === undefined ? [] : [threadsIn(division)]
  const exported = entries.map((name, i) => {
    const index = module.exports.get(name)
    if (index === undefined) throw new Error(`native: the module does not export "${name}"`)
    const call = `f${index}((unsigned char *)memory)`
    const isVoid = module.functions[index].result === undefined
    const body = isVoid ? `${call}; return 0;` : `return (int)${call};`
    return `__attribute__((visibility("default"))) int entry_${i}(void *memory) { ${body} }`
  })
  return [`#define LANES ${lanes}`, prelude, ...signatures, ...bodies, ...threads, ...exported, ""].join("\n")
}

const typesInC: Readonly<Record<ValueType, string>> = {
  i32: "u32",
  i64: "u64",
  f32: "float",
  f64: "double",
  v128: "F4",
}

const signatureOf = ({ params, result }: DecodedFunction, index: number): string => {
  const list = ["unsigned char *const m", ...params.map((type, i) => `${typesInC[type]} x${i}`)]
  const type = result === undefined ? "void" : typesInC[result.type]
  return `__attribute__((noinline)) ${type} f${index}(${list.join(", ")})`
}

const hex = (word: number): string => `0x${(word >>> 0).toString(16)}u`

/** Writes one function. */
class FunctionPrinter {
  private readonly fn: Merged
  private readonly lanes: Lanes
  private readonly lines: Array<string> = []

  constructor(fn: Merged, lanes: Lanes) {
    this.fn = fn
    this.lanes = lanes
  }

  print(index: number): string {
    const { lines, fn } = this
    lines.push(`static ${signatureOf(fn, index)} {`)
    fn.locals.forEach((type, local) => {
      if (local < fn.params.length || fn.places.has(local)) return
      const names = fn.uniform.has(local)
        ? this.widths().map((width) => `${typeFor(width)} ${wideName(local, width)}`)
        : []
      const declared = names.length > 0 ? names : [`${typesInC[type]} x${local}`]
      for (const one of declared) lines.push(`${one} = ${type === "v128" ? "{0}" : "0"};`)
    })
    fn.packs.forEach(({ length }, pack) => lines.push(`F${4 * length} w${pack} = {0};`))
    this.steps(fn.body)
    if (fn.result !== undefined) lines.push(`return ${this.value(fn.result)};`)
    lines.push("}")
    return lines.join("\n")
  }

  private widths(): ReadonlyArray<Lanes> {
    return ([4, 8, 16] as const).filter((width) => width <= this.lanes)
  }

  private steps(steps: ReadonlyArray<Step>): void {
    for (const step of steps) this.step(step)
  }

  private step(step: Step): void {
    const { lines } = this
    switch (step.kind) {
      case "set":
        return this.set(step.local, step.value)
      case "setPack":
        lines.push(`w${step.pack} = ${this.value(step.value, 4 * step.vectors)};`)
        // Without this, GCC reads a vector from memory again each time that it is used.
        if (step.value.kind === "load") lines.push(`in_register${4 * step.vectors}(w${step.pack});`)
        return
      case "storePack": {
        const value = this.value(step.value, 4 * step.vectors)
        lines.push(`v128_store(${4 * step.vectors}, ${this.pointer(step.address, step.offset)}, ${value});`)
        return
      }
      case "store": {
        const isVector = step.name.startsWith("v128")
        const args = [this.pointer(step.address, step.offset), this.value(step.value)]
        const rest = step.lane === undefined ? [] : [step.lane]
        lines.push(`${nameOf(step.name)}(${[...(isVector ? [4] : []), ...args, ...rest].join(", ")});`)
        return
      }
      case "call": {
        const call = `f${step.fn}(${["m", ...step.args.map((arg) => this.value(arg))].join(", ")})`
        lines.push(step.result === undefined ? `${call};` : `x${step.result} = ${call};`)
        return
      }
      case "bulk": {
        const to = this.pointer(step.to, 0)
        const source = step.name === "copy" ? this.pointer(step.source, 0) : `(int)${this.value(step.source)}`
        const name = step.name === "copy" ? "memmove" : "memset"
        lines.push(`${name}(${to}, ${source}, ${this.value(step.bytes)});`)
        return
      }
      case "loop":
        lines.push("do {")
        this.steps(step.body)
        lines.push(`} while (${this.value(step.condition)});`)
        return
      case "when":
        lines.push(`if (${this.value(step.condition)}) {`)
        this.steps(step.body)
        lines.push("}")
        return
      default:
        throw new Error(`native: unknown step ${JSON.stringify(step satisfies never)}`)
    }
  }

  private set(local: number, value: Value): void {
    const { lines, fn } = this
    const place = fn.places.get(local)
    if (place !== undefined) {
      const { length } = fn.packs[place.pack]
      lines.push(`w${place.pack} = with${4 * length}(w${place.pack}, ${place.index}, ${this.value(value)});`)
    } else if (fn.uniform.has(local)) {
      // A uniform value exists at every width; the C compiler drops those that nobody reads.
      for (const width of this.widths()) lines.push(`${wideName(local, width)} = ${this.value(value, width)};`)
    } else lines.push(`x${local} = ${this.value(value)};`)
  }

  private pointer(address: Value, offset: number): string {
    if (address.kind === "constant") return `(m + ${address.words[0] + offset})`
    return `(m + (size_t)${this.value(address)}${offset === 0 ? "" : ` + ${offset}`})`
  }

  /** Writes a value; a vector gets this number of lanes. */
  private value(value: Value, lanes = 4): string {
    const { fn } = this
    switch (value.kind) {
      case "local": {
        const place = fn.places.get(value.local)
        if (place !== undefined) {
          const wide = `w${place.pack}`
          return lanes > 4 ? wide : `part${4 * fn.packs[place.pack].length}(${wide}, ${place.index})`
        }
        return fn.uniform.has(value.local) ? wideName(value.local, lanes) : `x${value.local}`
      }
      case "constant":
        return constantOf(value.type, value.words, lanes)
      case "load": {
        const { into, lane, name } = value
        const isVector = value.type === "v128"
        const args = [this.pointer(value.address, value.offset), ...(into === undefined ? [] : [this.value(into)])]
        const all = [...(isVector ? [lanes] : []), ...args, ...(lane === undefined ? [] : [lane])]
        return `${nameOf(name)}(${all.join(", ")})`
      }
      case "operation":
        return this.operation(value, lanes)
    }
  }

  private operation({ args, lanes: immediate, name }: Value & { readonly kind: "operation" }, lanes: number): string {
    const texts = args.map((arg) => this.value(arg, lanes))
    if (name === "select") return `(${texts[2]} ? ${texts[0]} : ${texts[1]})`
    const isVector = /x\d+\.|^v128/.test(name)
    return `${nameOf(name)}(${[...(isVector ? [lanes] : []), ...texts, ...immediate].join(", ")})`
  }
}

const nameOf = (name: string): string => name.replace(".", "_")
const typeFor = (lanes: number): string => `F${lanes}`
const wideName = (local: number, lanes: number): string => `x${local}_${lanes}`

const constantOf = (type: ValueType, words: ReadonlyArray<number>, lanes: number): string => {
  const [low, high] = words
  if (type === "i32") return hex(low)
  if (type === "v128") {
    if (words.every((word) => word === low)) return `filled${lanes}(${hex(low)})`
    const all = Array.from({ length: lanes }, (_, i) => hex(words[i % words.length]))
    return `((F${lanes})(U${lanes}){${all.join(", ")}})`
  }
  const bits = `((u64)${hex(high)} << 32 | ${hex(low)})`
  return type === "i64" ? bits : `f64_reinterpret_i64(${bits})`
}
