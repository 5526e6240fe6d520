export declare function userHome(): string
export declare function userCaches(): string
export declare function privateFolder(folder: string): string
export declare function cacheIn(folder: string, name: string): string
export declare function userCache(name: string): string | undefined
export declare function isOwnFile(path: string): boolean
