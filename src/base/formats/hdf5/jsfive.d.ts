/** Declares the part of the package `jsfive`, which has no types, that `read.ts` uses. */
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
    readonly _dataobjects: {
      /** The shape of a chunk; null for a dataset that is stored as a whole. */
      readonly chunks: ReadonlyArray<number> | null
    }
  }
  /** The filters that unpack chunks, by their numbers in HDF5. */
  export const Filters: Map<number, (chunk: ArrayBuffer, itemSize: number) => ArrayBuffer>
}

/** Declares the part of the package `pako`, which has no types, that `read.ts` uses. */
declare module "pako" {
  export class Inflate {
    /** The code of the error; 0 if there was none. */
    readonly err: number
    readonly msg: string
    onData: (part: Uint8Array) => void
    push(bytes: Uint8Array, isLast: boolean): boolean
  }
}
