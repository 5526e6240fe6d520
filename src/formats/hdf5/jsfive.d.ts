/** The part of the package `jsfive`, which comes without types, that `read.ts` uses. */
declare module "jsfive" {
  export class Group {
    readonly keys: ReadonlyArray<string>
    readonly attrs: Readonly<Record<string, unknown>>
    get(path: string): Group | Dataset | null
  }
  export class File extends Group {
    constructor(bytes: ArrayBuffer, name: string)
  }
  export class Dataset {
    readonly shape: ReadonlyArray<number>
    readonly dtype: unknown
    readonly value: ArrayLike<unknown>
  }
}
