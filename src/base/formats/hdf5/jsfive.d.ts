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
      /** Returns the messages of a type in the header of the dataset. */
      find_msg_type(type: number): ReadonlyArray<ReadonlyMap<string, number>>
      /** Returns the version and the class of the message about the storage, and where its address stands in the file. */
      _get_data_message_properties(
        offset: number,
      ): readonly [version: number, dimensions: number | undefined, storage: number, address: number]
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
