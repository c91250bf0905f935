# One image for the API, the worker, the migrations and the operators' commands. The command decides which one runs.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:2fe369e969550cde8e867afc3fe370b260140cab4a23d467074295b42163d553

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No install script has to run: the binaries of esbuild and swc come as packages.
RUN npm ci --omit=dev --ignore-scripts
# The worker's connection to Temporal trusts the system's authorities, and the image has none: it gets those of Node.
RUN mkdir -p /etc/ssl/certs && node -p "require('tls').rootCertificates.join('\n')" > /etc/ssl/certs/ca-certificates.crt

FROM packages AS bundle
COPY . .
# Workers load this bundle of the workflows. It is built from the code that is in the image.
RUN node worker/bundle-main.ts

FROM ${NODE_IMAGE}
# Two heaps of the allocator in place of eight a core: a worker's threads leave less memory unused (docs/performance.md).
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=packages /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=packages /app/node_modules node_modules
# Whatever umask the repository was checked out with, the user below reads it.
COPY --chmod=755 package.json package-lock.json CHANGELOG.md ./
COPY --chmod=755 activities activities
COPY --chmod=755 api api
COPY --chmod=755 config config
COPY --chmod=755 db db
COPY --chmod=755 docs/guides docs/guides
COPY --chmod=755 domain domain
COPY --chmod=755 ops ops
COPY --chmod=755 process process
COPY --chmod=755 worker worker
COPY --chmod=755 workflows workflows
COPY --from=bundle /app/.local/bundle .local/bundle
USER 1000:1000
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT ?? 3000}/health/live`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "api/main.ts"]
