# The command `effect` as an image: small, without a compiler, as a user without rights. docs/containers.md shows its use.

FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm pack --silent > /dev/null
# The packages that the command needs at run time, with the versions of the lock file, and the command as one of them.
# Among the optional packages, only the one for clusters is small: the image needs it like any other.
RUN npm pkg set dependencies.@effect/sql-pg="$(node -p 'require("./package.json").devDependencies["@effect/sql-pg"]')" \
  && npm pkg delete devDependencies.@effect/sql-pg peerDependencies.@effect/sql-pg \
  && npm prune --omit=dev --ignore-scripts \
  && mkdir node_modules/effect-rl \
  && tar -xzf effect-rl-*.tgz -C node_modules/effect-rl --strip-components=1 \
  && ln -s ../effect-rl/bin/effect.js node_modules/.bin/effect \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' \) -delete \
  && rm -rf node_modules/effect/src node_modules/@effect/*/src node_modules/effect-rl/src node_modules/@types

FROM node:24-bookworm-slim
# Node looks for packages in /node_modules from any folder, so a file in /work can import "effect-rl" and "effect".
COPY --from=build /build/node_modules /node_modules
COPY containers/health.mjs /usr/local/lib/effect-health.mjs
RUN mkdir /work && chown 1000:1000 /work
ENV NODE_ENV=production PATH=/node_modules/.bin:$PATH
WORKDIR /work
# The user `node` of the base image, by number, so that Kubernetes sees that it is not root.
USER 1000:1000
EXPOSE 4400 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "/usr/local/lib/effect-health.mjs"]
ENTRYPOINT ["effect"]
CMD ["--help"]
