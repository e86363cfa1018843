declare module "spec:*" {
  const data: Record<string, unknown>;
  export default data;
}
