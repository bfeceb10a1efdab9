// Reads Parquet files with hyparquet, and prints the number of rows, the names of the columns and the first row of each as JSON.
import { asyncBufferFromFile, parquetReadObjects, parquetMetadataAsync, parquetSchema } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

for (const path of process.argv.slice(2)) {
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  const rows = await parquetReadObjects({ file, metadata, compressors })
  const columns = parquetSchema(metadata).children.map(c => c.element.name)
  const text = (_, v) => typeof v === 'bigint' ? v.toString() : v
  console.log(JSON.stringify({ rows: rows.length, columns, first: rows[0] ?? null }, text))
}
